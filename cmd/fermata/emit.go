package main

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/fermata-agents/fermata/agent"
	fermata "github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/connect"
)

// emitWithin bounds how long one event to many runs may take.
const emitWithin = 30 * time.Second

func (c *cli) emitCommand() *cobra.Command {
	var o fermata.EmitOptions
	var tokenFile string
	var paths []string
	cmd := &cobra.Command{
		Use:   "emit TOPIC [JSON]",
		Short: "Send an event to the runs that wait for it",
		Long: `Emit sends an event to every run that waits for its topic, and to every daemon that
listens to it. The payload is any JSON. A run that waits for another payload keeps
waiting.

With --session, only that session gets the event. If the session does not take it,
the command fails: repeat it with the same --id.

With --watch, the command stays, and emits an event each time files have changed and come
to rest. The payload names them: {"changed": […], "removed": […]}.`,
		Example: `  fermata emit orders.paid '{"order":118}'
  fermata emit bank.open
  fermata emit orders.paid '{"order":118}' --session desk --id paid-118
  fermata emit inbox.changed --watch ./inbox`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 {
				return nil
			}
			return exactArgs(1, "a topic, and perhaps a payload as JSON in quotes")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			payload, err := payloadOf(args)
			if err != nil {
				return err
			}
			files, err := watched(paths, len(args) > 1 || o.ID != "")
			if err != nil {
				return err
			}
			o.By = byOr(o.By)
			// The token in the environment is for one session; an event to many must not carry it.
			if o.Session != "" || tokenFile != "" {
				if o.Token, err = tokenOf(tokenFile); err != nil {
					return err
				}
			}
			return c.WithServer(cmd.Context(), func(_ *connect.Server, runs *fermata.Client) error {
				if files != nil {
					return c.watchFiles(cmd.Context(), runs, args[0], files, &o)
				}
				return c.emit(cmd.Context(), runs, args[0], payload, &o)
			})
		},
	}
	cmd.Flags().StringVar(&o.ID, "id", "", "id of the event; repeated with the same id, it has one effect")
	cmd.Flags().StringVar(&o.Session, "session", "", "send it to this session only")
	cmd.Flags().StringArrayVar(&paths, "watch", nil, "emit each time this file, or what is below this folder, has changed; may be repeated")
	c.byFlag(cmd, &o.By)
	c.tokenFlag(cmd, &tokenFile)
	c.jsonFlag(cmd, "print how many runs took it as one line of JSON")
	return cmd
}

// payloadOf checks an event before a server is looked for.
func payloadOf(args []string) (any, error) {
	if err := agent.CheckTopic(args[0]); err != nil {
		return nil, err
	}
	if len(args) == 1 {
		return nil, nil
	}
	raw, err := jsonOf("the payload", args[1])
	if err != nil {
		return nil, err
	}
	return raw, nil
}

// jsonOf checks that a text is JSON.
func jsonOf(what, text string) (json.RawMessage, error) {
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		return nil, agent.Errorf(agent.CodeInvalidInput, "%s is not JSON: %w; put a text in double quotes, and all of it in single quotes for the shell: '\"paid\"'", what, err)
	}
	return json.RawMessage(text), nil
}

func (c *cli) emit(ctx context.Context, runs *fermata.Client, topic string, payload any, o *fermata.EmitOptions) error {
	sending, cancel := context.WithTimeout(ctx, emitWithin)
	defer cancel()
	o.TaskQueue = c.TaskQueue
	done, err := runs.Emit(sending, topic, payload, o)
	if err != nil {
		return err
	}
	switch {
	case c.JSON:
		c.Line(done)
	case done.Accepted == 0 && len(done.Failed) == 0:
		c.Print("no run waits for %s with this payload", topic)
	default:
		c.Print("%s: %d accepted, %d failed", topic, done.Accepted, len(done.Failed))
	}
	// One run that fails must not hide the runs that took the event.
	var failed []error
	for _, f := range done.Failed {
		failed = append(failed, f.Error)
	}
	return errors.Join(failed...)
}
