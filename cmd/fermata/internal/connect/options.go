package connect

import (
	"cmp"
	"os"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"

	"github.com/fermata-agents/fermata/agent"
	fermata "github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/env"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/secret"
	"github.com/fermata-agents/fermata/telemetry"
)

// prepare adds the keys of this process, and metrics, to the options of a Temporal
// client.
func (c *Connector) prepare(o *client.Options) error {
	if c.Meters != nil {
		telemetry.Prepare(o, c.Meters)
	}
	ring, err := env.Keyring()
	if err != nil {
		return err
	}
	until, err := env.PlainUntil()
	if err != nil {
		return err
	}
	return fermata.Prepare(o, &fermata.PrepareOptions{Keyring: ring, PlainUntil: until})
}

// clientOptions returns the options from flags, environment and profile, in this order.
// named reports whether they say where the server is.
func (c *Connector) clientOptions() (o client.Options, named bool, err error) {
	profile, err := c.ClientProfile()
	if err != nil {
		return o, false, err
	}
	if o, err = OptionsOf(profile); err != nil {
		return o, false, err
	}
	o.HostPort = cmp.Or(c.Address, o.HostPort)
	o.Namespace = cmp.Or(c.Namespace, o.Namespace, DefaultNamespace)
	o.Logger = c.Log.SDK()
	// The SDK's own default would wait longer than a person does.
	o.ConnectionOptions.GetSystemInfoTimeout = DialPatience
	if err := c.prepare(&o); err != nil {
		return o, false, err
	}
	// A namespace alone names no server.
	named = o.HostPort != "" || c.Profile != "" || os.Getenv("TEMPORAL_PROFILE") != ""
	o.HostPort = cmp.Or(o.HostPort, DefaultAddress)
	return o, named, nil
}

// Named reports whether flags, environment or profile say where the server is.
func (c *Connector) Named() (bool, error) {
	_, named, err := c.clientOptions()
	return named, err
}

// ClientProfile returns the profile that flags and environment name. Values of the
// environment override it.
func (c *Connector) ClientProfile() (*envconfig.ClientConfigProfile, error) {
	profile, err := envconfig.LoadClientConfigProfile(envconfig.LoadClientConfigProfileOptions{ConfigFileProfile: c.Profile})
	if err != nil {
		file := cmp.Or(os.Getenv("TEMPORAL_CONFIG_FILE"), envconfig.DefaultConfigFilePath())
		return nil, agent.Errorf(agent.CodeInvalidInput, "the configuration of the Temporal client: %w; profiles are in %s", err, file)
	}
	key, err := secret.Get(apiKeyVariable)
	if err != nil {
		return nil, err
	}
	// The environment and its file override the profile.
	profile.APIKey = cmp.Or(key, profile.APIKey)
	return &profile, nil
}

// apiKeyVariable has the key by which Temporal knows this client.
const apiKeyVariable = "TEMPORAL_API_KEY"

// OptionsOf returns the options of a client with a profile.
func OptionsOf(profile *envconfig.ClientConfigProfile) (client.Options, error) {
	o, err := profile.ToClientOptions(envconfig.ToClientOptionsRequest{})
	if err != nil {
		return o, agent.Errorf(agent.CodeInvalidInput, "the configuration of the Temporal client: %w", err)
	}
	return o, nil
}
