package env

import (
	"cmp"
	"os"
)

// User is who answers, where nobody says so: a claim.
func User() string { return cmp.Or(os.Getenv("USER"), os.Getenv("LOGNAME")) }
