namespace sconce {}
