package cli

import (
	// Mozilla's CA certificates are used if the system has none, as in the image.
	// Certificates of the system or of SSL_CERT_FILE take precedence.
	_ "golang.org/x/crypto/x509roots/fallback"
)
