package agentsfile

import (
	"maps"
	"os"
	"slices"

	"github.com/fermata-agents/fermata/cmd/fermata/internal/secret"
)

// cloudKeys are the variables in which the clouds look for keys. They can do without.
var cloudKeys = map[string]string{providerAzure: "AZURE_OPENAI_API_KEY", providerBedrock: "AWS_BEARER_TOKEN_BEDROCK"}

// checkKeyFiles reports why the file can't be read that a provider's key is to be in.
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

// secretFault is why the file can't be read that a variable's value is to be in; nil for none.
func secretFault(name string) error {
	_, err := secret.Get(name)
	return err
}

// variable is what a variable has, or its file (see the package secret). What is wrong with
// the file was told when the agents file was read.
func variable(name string) string {
	text, _ := secret.Get(name)
	return text
}

// filed is the key that is in the file of one of some variables; empty if it is in none.
// What is in a variable itself the providers read.
func filed(names ...string) string {
	for _, name := range names {
		if name != "" && os.Getenv(name+secret.FileSuffix) != "" {
			return variable(name)
		}
	}
	return ""
}
