package activities

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"unicode"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/excerpt"
	"github.com/fermata-agents/fermata/internal/loop"
	"github.com/fermata-agents/fermata/internal/wire"
	"github.com/fermata-agents/fermata/store"
)

// maxNamedText is how much of what was said of a file stays with its name in a summary, in bytes.
const maxNamedText = 200

// namedFiles returns the newest files of messages that a summary replaces, in order. Those of an
// earlier summary are named on. So are those that a later message shows again: the tool show_file
// must not go when it was used.
func namedFiles(dropped []store.Entry) (parts []agent.Part) {
	seen := map[string]bool{}
	for _, p := range slices.Backward(filePartsOf(dropped)) {
		if !seen[p.File.Digest] && len(parts) < loop.MaxNamedFiles {
			seen[p.File.Digest] = true
			parts = append(parts, agent.Part{Type: agent.PartFile, Text: shortened(p.Text), File: p.File})
		}
	}
	slices.Reverse(parts)
	return parts
}

// shortened returns the beginning of a text, and a shortened text as it is.
func shortened(text string) string {
	const dots = "…"
	if len(text) <= maxNamedText {
		return text
	}
	return strings.ToValidUTF8(text[:maxNamedText-len(dots)], "") + dots
}

func filePartsOf(entries []store.Entry) (parts []agent.Part) {
	for _, e := range entries {
		parts = append(parts, e.FileParts()...)
	}
	return parts
}

// onlyNamed returns the parts of a summary as every model gets them. Of the files the names alone,
// as single words: a summary is a user's message, and a tool may have chosen the name, and what was
// said of the file.
func onlyNamed(parts []agent.Part) (out []agent.Part) {
	lines := []string{"[Files of the conversation before:]"}
	for _, p := range parts {
		if p.File == nil {
			out = append(out, p)
			continue
		}
		named := *p.File
		named.Name = strings.Map(wordRune, named.Name)
		lines = append(lines, fileLine(&named))
	}
	return append(out, agent.Part{Type: agent.PartText, Text: strings.Join(lines, "\n")})
}

// wordRune makes one word of a file's name. The digits of its handle still find the file.
func wordRune(r rune) rune {
	switch {
	case unicode.IsSpace(r):
		return '_'
	case unicode.IsLetter(r), unicode.IsMark(r), unicode.IsDigit(r), strings.ContainsRune("._-", r):
		return r
	}
	return -1
}

// offerFiles returns a Spec with the tool show_file if files of the conversation are not shown any
// more: a summary names them, or newer ones need the room. So most conversations don't have it, and
// one that has it keeps it: the tools come first in what a provider caches. When the tool comes,
// the conversation reads differently in any case. A tool of the agent's own with its name wins. The
// model of an agent without tools may take none, and would refuse the request.
func offerFiles(spec *agent.Spec, entries []store.Entry) *agent.Spec {
	if len(spec.Toolset) == 0 || !leavesFilesOut(entries) {
		return spec
	}
	if _, has := spec.Tool(agent.ShowFileTool); has {
		return spec
	}
	s := *spec
	s.Toolset = append(slices.Clip(spec.Toolset), loop.ShowFileTool(spec))
	return &s
}

// leavesFilesOut reports whether a request can't show all files of its conversation, to whichever
// model.
func leavesFilesOut(entries []store.Entry) bool {
	images, bytes := 0, 0
	for i := range entries {
		e := &entries[i]
		for _, f := range e.Files() {
			if e.Note == agent.NoteSummary {
				return true
			}
			if bytes += f.Size; f.IsImage() {
				images++
			}
		}
	}
	return images > maxRequestImages || bytes > maxRequestFiles
}

// shownFiles finds the files that the calls of show_file ask for, at most [agent.MaxFiles]. What a
// model can't read, or was deleted, becomes a text in the next request, as any file does.
func (d *Activities) shownFiles(ctx context.Context, have conversation, spec *agent.Spec, calls []agent.ToolCall) (all []wire.ShownFile) {
	if t, _ := spec.Tool(agent.ShowFileTool); t.Executor != agent.ExecutorRuntime {
		return nil
	}
	for _, c := range calls {
		if c.Tool != agent.ShowFileTool {
			continue
		}
		if len(all) == agent.MaxFiles {
			return all
		}
		p, err := d.shownFile(ctx, have, c)
		if err != nil {
			all = append(all, wire.ShownFile{Err: err.Error()})
			continue
		}
		p.Text = excerpt.Of(p.Text, agent.MaxFileText, len(p.Text))
		all = append(all, wire.ShownFile{File: &p})
	}
	return all
}

// shownFile returns the part with the file that a call asks for, as one of the run's own session.
// Its error is for the model.
func (d *Activities) shownFile(ctx context.Context, have conversation, c agent.ToolCall) (agent.Part, error) {
	var asked struct {
		File string `json:"file"`
	}
	if err := json.Unmarshal(c.Arguments, &asked); err != nil {
		return agent.Part{}, errors.New("the arguments do not fit: " + err.Error())
	}
	return d.findFile(ctx, have, asked.File)
}

// findFile returns the part with the file that a model means by a name, as one of the run's own
// session. Its error is for the model.
func (d *Activities) findFile(ctx context.Context, have conversation, name string) (agent.Part, error) {
	p, err := agent.FindFile(filePartsOf(have.entries), name)
	if errors.Is(err, agent.CodeNotFound) && compacted(have.log) { // its name may stand in the words of a summary
		p, err = d.fileBefore(ctx, have.in, name)
	}
	if err != nil {
		return agent.Part{}, err
	}
	return d.ownFile(ctx, have.in.Session, p)
}

func compacted(log *store.View) bool {
	return slices.ContainsFunc(log.Events(), func(e agent.Event) bool { return e.Compaction != nil })
}

// fileBefore finds a file in the whole conversation, also before compactions.
func (d *Activities) fileBefore(ctx context.Context, in ModelInput, name string) (p agent.Part, err error) {
	events, err := d.wholeLog(ctx, in)
	if err == nil {
		var parts []agent.Part
		for _, e := range events {
			if e.Message != nil && e.Message.Note != agent.NoteSummary {
				parts = append(parts, e.Message.FileParts()...)
			}
		}
		p, err = agent.FindFile(parts, name)
	}
	if err != nil && !errors.Is(err, agent.CodeNotFound) && !errors.Is(err, agent.CodeInvalidInput) {
		return p, errors.New("the older part of the conversation can't be read now, and the file may be in it: try again later")
	}
	return p, err
}

// wholeLog returns the events of the conversation, also those before compactions. A reset begins a new
// conversation: the model knows nothing of before.
func (d *Activities) wholeLog(ctx context.Context, in ModelInput) (events []agent.Event, err error) {
	err = patiently(ctx, func() error {
		open, err := d.openTail(ctx, in.UpTo)
		if err != nil {
			return err
		}
		whole, err := d.Log.View(ctx, open.head)
		if err != nil {
			return err
		}
		events = store.KnownEvents(whole.With(open.events, in.UpTo.Seq).Events())
		return nil
	})
	for i, e := range slices.Backward(events) {
		if e.Started != nil && e.Started.Carry == agent.CarryReset {
			return events[i:], err
		}
	}
	return events, err
}

// ownFiles returns the parts for a summary with files of the session itself. It leaves out what can't
// be copied now: the file can still be found by its name.
func (d *Activities) ownFiles(ctx context.Context, session string, parts []agent.Part) (own []agent.Part) {
	ctx, stop := context.WithTimeout(ctx, filesTime) // the summary is paid
	defer stop()
	for _, p := range parts {
		if p, err := d.ownFile(ctx, session, p); err == nil {
			own = append(own, p)
		}
	}
	return own
}

// ownFile returns a part whose file is the session's own. A fork shares files of the session that it
// comes from, and a run shows only its own: such a file is stored once more. A file of any other
// session is none of the conversation, whatever its log says.
func (d *Activities) ownFile(ctx context.Context, session string, p agent.Part) (agent.Part, error) {
	f := p.File
	if f.Session == session {
		return p, nil
	}
	err := patiently(ctx, func() error {
		if err := d.shares(ctx, session, f); err != nil {
			return err
		}
		data, err := d.Log.File(ctx, f)
		if err == nil {
			p.File, err = d.Log.PutFile(ctx, session, f.Name, f.MediaType, data)
		}
		return err
	})
	switch {
	case errors.Is(err, agent.CodeNotFound):
		return p, errors.New(lacking(f, "it is another session's"))
	case errors.Is(err, agent.CodeChunkMissing):
		return p, errors.New(lacking(f, "it was deleted"))
	case errors.Is(err, agent.CodeChunkDamaged):
		return p, errors.New(lacking(f, "it is damaged"))
	case err != nil:
		return p, errors.New(lacking(f, "it can't be read now: try again later"))
	}
	return p, nil
}

// shares returns an error, [agent.CodeNotFound] if the session of a file wrote no part of a session's
// log. The store knows that: a worker can put any name in a message, but not in a head.
func (d *Activities) shares(ctx context.Context, session string, f *agent.File) error {
	head, err := d.Log.Head(ctx, session)
	if err != nil || slices.ContainsFunc(head.Origins, func(o store.Origin) bool { return o.Session == f.Session }) {
		return err
	}
	return agent.Errorf(agent.CodeNotFound, "session %s shares nothing of session %s", session, f.Session)
}
