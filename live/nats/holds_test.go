package nats_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/keyring"
	"github.com/fermata-agents/fermata/live"
	"github.com/fermata-agents/fermata/live/nats"
)

var _ live.Holds = (*nats.Holds)(nil)

// A hold reaches those who follow its tree, and nobody else; with keys, nobody else can
// make them believe anything.
func TestAHoldReachesThoseWhoFollowItsTree(t *testing.T) {
	at := serve(t, -1).ClientURL()
	ring, err := keyring.Parse("k1:MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=")
	require.NoError(t, err)
	for name, o := range map[string]*nats.Options{"plain": nil, "with keys": {Keys: ring}} {
		t.Run(name, func(t *testing.T) {
			teller, follower := nats.NewHolds(dial(t, at), o), dial(t, at)
			heard := make(chan agent.HoldRef, 10)
			leave := nats.NewHolds(follower, o).Follow("trip", func(h agent.HoldRef) { heard <- h })
			require.NoError(t, follower.Flush())
			say := func(from *nats.Holds, session string, n int) {
				from.Publish(agent.HoldRef{Session: session, N: n, Verb: agent.VerbInterrupt})
			}
			say(teller, "trip-2", 1)
			if o != nil {
				say(nats.NewHolds(dial(t, at), nil), "trip", 2)
			}
			say(teller, "trip/scout-1", 3)
			select {
			case h := <-heard:
				require.Equal(t, agent.HoldRef{Session: "trip/scout-1", N: 3, Verb: agent.VerbInterrupt}, h)
			case <-time.After(patience):
				t.Fatal("nothing was heard")
			}
			leave()
			require.NoError(t, follower.Flush())
			require.Zero(t, follower.NumSubscriptions())
			require.Empty(t, heard)
		})
	}
}
