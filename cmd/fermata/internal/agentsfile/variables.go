package agentsfile

import (
	"maps"
	"os"
	"slices"

	"github.com/fermata-agents/fermata/cmd/fermata/internal/secret"
)

// cloudKeys are the variables with the clouds' keys, which are optional.
var cloudKeys = map[string]string{providerAzure: "AZURE_OPENAI_API_KEY", providerBedrock: "AWS_BEARER_TOKEN_BEDROCK"}

// checkKeyFiles returns why a file with a provider's key can't be read.
func checkKeyFiles() error {
	names := slices.Sorted(maps.Values(cloudKeys))
	for _, provider := range slices.Sorted(maps.Keys(keys)) {
		names = append(names, keys[provider]...)
	}
	for _, name := range names {
		if err := secretFault(name); err != nil {
			return err
		}
	}
	return nil
}

// secretFault returns why the file with a variable's value can't be read; nil if there is
// no such file.
func secretFault(name string) error {
	_, err := secret.Get(name)
	return err
}

// variable returns the value of a variable, or of its file (see package secret). Errors
// were reported when the agents file was read.
func variable(name string) string {
	text, _ := secret.Get(name)
	return text
}

// filed returns the key that one of the variables names a file for; empty if none does.
// The adapters themselves read keys in variables.
func filed(names ...string) string {
	for _, name := range names {
		// Only files: the adapters read a plain variable themselves, and know its name for errors.
		if name != "" && os.Getenv(name+secret.FileSuffix) != "" {
			return variable(name)
		}
	}
	return ""
}
