package main

import (
	"context"
	"errors"
	"time"

	"github.com/fermata-agents/fermata/agent"
	fermata "github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/watch"
)

// watched looks at the files of --watch; nil without any. given means that the command has a payload or an id.
func watched(paths []string, given bool) (*watch.Files, error) {
	switch {
	case len(paths) == 0:
		return nil, nil
	case given:
		return nil, agent.Errorf(agent.CodeInvalidInput, "--watch makes an event's payload and id of the files; leave both out")
	}
	return watch.New(paths...)
}

// fileEvents emits an event for each change of some files.
type fileEvents struct {
	*cli
	runs   *fermata.Client
	files  *watch.Files
	topic  string
	o      fermata.EmitOptions
	failed string // the id of the change that could not be emitted, which is said once
}

// watchFiles emits events until Ctrl-C.
func (c *cli) watchFiles(ctx context.Context, runs *fermata.Client, topic string, files *watch.Files, o *fermata.EmitOptions) error {
	pressed, giveBack := c.keys.Take()
	defer giveBack()
	e := &fileEvents{cli: c, runs: runs, files: files, topic: topic, o: *o}
	c.Note("each change of these files emits %s; Ctrl-C ends this", topic)
	tick := time.NewTicker(watch.Every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-pressed: // this is how watching ends, so it is no error
			return nil
		case <-tick.C:
		}
		if err := e.look(ctx); err != nil {
			return err
		}
	}
}

// look emits an event if files have changed. What may be tried again is, at the next look and under the
// same id: a run that has taken the event takes it once.
func (e *fileEvents) look(ctx context.Context) error {
	change, err := e.files.Look()
	if err != nil || change == nil {
		return err
	}
	o := e.o
	o.ID = change.ID
	err = e.emit(ctx, e.runs, e.topic, change, &o)
	if err != nil && e.failed != change.ID {
		e.failed = change.ID
		e.Note("%v", err)
	}
	var why *agent.Error
	if errors.As(err, &why) && why.Retryable {
		return nil
	}
	e.files.Reported()
	return nil
}
