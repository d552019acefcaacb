package env

import (
	"cmp"
	"os"
)

// User returns the user's name for a By field. It is not authenticated.
func User() string { return cmp.Or(os.Getenv("USER"), os.Getenv("LOGNAME")) }
