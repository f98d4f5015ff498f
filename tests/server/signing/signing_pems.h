// Keys in PEM that sign nothing outside of these tests.
#pragma once

#include <string>

namespace sconce::test {

// Two of Ed25519, and one of ECDSA on P-256.
inline const std::string kFirst =
    "-----BEGIN PRIVATE KEY-----\n"
    "MC4CAQAwBQYDK2VwBCIEIGhv1F9JehCptMHQCXG1nZjTAPr5oh1mXXxKuvRWgr+P\n"
    "-----END PRIVATE KEY-----\n";
inline const std::string kFirstPublic =
    "-----BEGIN PUBLIC KEY-----\n"
    "MCowBQYDK2VwAyEA9gbIH9jwj09+4k0VArQWLtN4vZdjzesxojYqwx/PvuI=\n"
    "-----END PUBLIC KEY-----\n";
inline const std::string kFirstId = "af359e6d92915e5e1a14947cb936bb2f7dd3fc64d7612a851a7751b5d741425d";
inline const std::string kSecond =
    "-----BEGIN PRIVATE KEY-----\n"
    "MC4CAQAwBQYDK2VwBCIEIGGcdNVQrKA6OUpWODVNLmo41tG3jHaKhYwHJZRN0zM8\n"
    "-----END PRIVATE KEY-----\n";
inline const std::string kSecondPublic =
    "-----BEGIN PUBLIC KEY-----\n"
    "MCowBQYDK2VwAyEAUo/gDvsiyfwvObVyarqbheafGCMVIEgpIbCiUP6KG+U=\n"
    "-----END PUBLIC KEY-----\n";
inline const std::string kEcdsa =
    "-----BEGIN PRIVATE KEY-----\n"
    "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgHXsW3w4dBIwja8sO\n"
    "Qkyw0ogrDPfEtq1i4AlLsjK5oUihRANCAATHKZw9jfWHlpdJv+Yaksz7TJMCQ3yg\n"
    "wryI2BXRMkvCMqtKgVlw5wSIRyTCnkvtwlXzYFNUsBsC3TIJAt3pYWzV\n"
    "-----END PRIVATE KEY-----\n";
inline const std::string kEcdsaPublic =
    "-----BEGIN PUBLIC KEY-----\n"
    "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAExymcPY31h5aXSb/mGpLM+0yTAkN8\n"
    "oMK8iNgV0TJLwjKrSoFZcOcEiEckwp5L7cJV82BTVLAbAt0yCQLd6WFs1Q==\n"
    "-----END PUBLIC KEY-----\n";

}  // namespace sconce::test
