// A certificate for localhost that issued itself, valid until 2120, with its key. For tests alone.
#pragma once

namespace sconce::server::test {

constexpr const char* kTestCertificate = R"(
-----BEGIN CERTIFICATE-----
MIIBXjCCAQSgAwIBAgIBATAKBggqhkjOPQQDAjAUMRIwEAYDVQQDDAlsb2NhbGhv
c3QwIBcNMjAwMTAxMDAwMDAwWhgPMjEyMDAxMDEwMDAwMDBaMBQxEjAQBgNVBAMM
CWxvY2FsaG9zdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABLUMd7QATm+gGjlJ
wTIFqfnm/aMvV9fwshCO+wBpk0S5a/Jmv6LFOkcckXdwrOa4vK7P6w6/bTx2tAk4
Nwc9ve6jRTBDMBQGA1UdEQQNMAuCCWxvY2FsaG9zdDAMBgNVHRMEBTADAQH/MB0G
A1UdDgQWBBTw2VBd3N7P6bVbaqlLnG2SvyzfPzAKBggqhkjOPQQDAgNIADBFAiEA
7XFpIxBV3LtJTSB0A7yAFmOiLUDwu789WE7l1QZjjwUCIAC2kkQxB7UvtlZU2rfT
Clm49F3/y/vb0W21c4tsMeBM
-----END CERTIFICATE-----
)";

constexpr const char* kTestKey = R"(
-----BEGIN EC PRIVATE KEY-----
MHcCAQEEIG17T7ivQ4cWsqSYuzhDdvOzhUbzBbM/nUGkQ4z9RXDAoAoGCCqGSM49
AwEHoUQDQgAEtQx3tABOb6AaOUnBMgWp+eb9oy9X1/CyEI77AGmTRLlr8ma/osU6
RxyRd3Cs5ri8rs/rDr9tPHa0CTg3Bz297g==
-----END EC PRIVATE KEY-----
)";

}  // namespace sconce::server::test
