package main

import (
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/fermata-agents/fermata/agent"
)

func (c *cli) approveCommand() *cobra.Command {
	d := &decider{cli: c, verb: agent.VerbApprove}
	cmd := d.command("approve SESSION", "Approve a tool call",
		"Approve lets a run make the tool call that it asks about. The approval carries the\ndigest of the arguments, so it is valid for this call only.", `  fermata approve invoice-118
  fermata approve invoice-118 --request q-7
  fermata approve invoice-118 --request q-7 --edit '{"amount_eur":80}'
  fermata approve invoice-118 --request q-7 --always --by ana@acme.com --token-file token`)
	f := cmd.Flags()
	f.StringVar(&d.edit, "edit", "", "make the call with these arguments instead, as JSON; it is not made if they do not fit the tool")
	f.BoolVar(&d.always, "always", false, "also approve all further calls of this tool in this run")
	f.BoolVar(&d.alwaysInSession, "always-in-session", false, "also approve all further calls of this tool in this session, also in later runs that the same person starts")
	f.StringVar(&d.note, "note", "", "a note that is recorded with the approval")
	return cmd
}

func (d *decider) approveOrder() (*agent.ApproveCommand, error) {
	order := &agent.ApproveCommand{Always: d.always, AlwaysInSession: d.alwaysInSession, Note: d.note}
	if d.edit != "" {
		raw, err := jsonOf("--edit", d.edit)
		var object map[string]json.RawMessage
		// Checked here: the run would refuse a list or a text, but only after the approval was
		// sent.
		if err == nil && json.Unmarshal(raw, &object) != nil {
			err = agent.Errorf(agent.CodeInvalidInput, "--edit must be an object, such as '{\"amount_eur\":80}'")
		}
		if err != nil {
			return nil, err
		}
		order.Arguments = raw
	}
	return order, nil
}
