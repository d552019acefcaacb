package worker

import "github.com/fermata-agents/fermata/activities"

// Resolve is what the options come to.
func (o *Options) Resolve() (*activities.Deeds, error) { return o.resolve() }

// Loopback tells whether an address is one of this machine.
var Loopback = loopback

// Patiently is what waits for a busy server.
var Patiently = patiently
