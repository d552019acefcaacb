package main

import (
	"fmt"

	broker "github.com/nats-io/nats.go"

	"github.com/fermata-agents/fermata/cmd/fermata/internal/connect"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/env"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/secret"
)

// checkBroker connects to the broker that the environment names, if it names one.
func (d *doctor) checkBroker() {
	place, err := secret.Get(env.Live)
	if err != nil {
		d.failed("live", err, "correct it, or unset it")
		return
	}
	if place == "" {
		return
	}
	if err := connect.CheckBrokers(place); err != nil {
		d.failed("live", err, "correct it, or unset it")
	} else if err := reachBroker(place); err != nil {
		d.found("live", verdictWarning, err.Error(), "start the broker, or correct "+env.Live)
	} else {
		d.found("live", verdictOK, "the broker that "+env.Live+" names answers", "")
	}
}

// reachBroker connects once. The error says nothing of the place, which may have a password.
func reachBroker(place string) error {
	conn, err := broker.Connect(place, broker.Name("fermata-doctor"), broker.Timeout(connect.DialPatience))
	if err != nil {
		return fmt.Errorf("the broker that %s names can't be reached, and who watches runs misses what models say while they say it: %w", env.Live, err)
	}
	defer conn.Close()
	if err := conn.FlushTimeout(connect.DialPatience); err != nil {
		return fmt.Errorf("the broker that %s names does not answer: %w", env.Live, err)
	}
	return nil
}
