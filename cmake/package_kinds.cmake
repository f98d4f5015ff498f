# Read by cpack for each kind of package: Debian's are installed in /usr and /etc, an archive anywhere.
if(CPACK_GENERATOR STREQUAL "DEB")
  set(CPACK_SET_DESTDIR ON)
  set(CPACK_INSTALL_PREFIX /usr)
endif()
