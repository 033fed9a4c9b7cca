package cli

// Mozilla's CA certificates, for where there is no file with any, as in the image.
// What the system or SSL_CERT_FILE has is used instead.
import _ "golang.org/x/crypto/x509roots/fallback"
