package activities

import (
	"context"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"go.temporal.io/sdk/activity"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/internal/loop"
	"github.com/fermata-agents/fermata/internal/wire"
	"github.com/fermata-agents/fermata/store"
)

// CopyFiles copies files from one session of a tree into another one, by their chunks. A file that
// was deleted, or is damaged, becomes a text that says so. Repeating it changes nothing.
var CopyFiles = durable.Activity[CopyFilesInput, CopiedFiles]{Name: "fermata.copy_files"}

// CopyFilesInput names two sessions, one right below the other. Parts are parts of type file, at
// most [agent.MaxFiles]. Only files of From are copied.
type CopyFilesInput struct {
	From  string       `json:"from"`
	To    string       `json:"to"`
	Parts []agent.Part `json:"parts"`
}

// CopiedFiles has the parts with files of the other session.
type CopiedFiles struct {
	Parts []agent.Part `json:"parts"`
}

// copyFiles leaves what it has copied in its heartbeats. The next attempt copies the rest: a slow store
// may need more than one attempt.
func (d *Activities) copyFiles(ctx context.Context, in CopyFilesInput) (CopiedFiles, error) {
	var done atomic.Pointer[CopiedFiles]
	done.Store(&CopiedFiles{})
	if activity.HasHeartbeatDetails(ctx) {
		var left CopiedFiles
		if activity.GetHeartbeatDetails(ctx, &left) == nil { // on an error it copies all of them again
			done.Store(&left)
		}
	}
	defer heartbeatWith(ctx, func() any { return *done.Load() })()
	if err := d.copyRest(ctx, in, &done); err != nil {
		return CopiedFiles{}, err
	}
	return *done.Load(), nil
}

// copyRest copies the files after those in done, and adds each one to done.
func (d *Activities) copyRest(ctx context.Context, in CopyFilesInput, done *atomic.Pointer[CopiedFiles]) error {
	// The workflow names the sessions of its parent or child alone. This is for a mistake in a
	// workflow: a copy into another tree would show a tenant's file to another one.
	if !directlyBelow(in.From, in.To) && !directlyBelow(in.To, in.From) {
		return agent.Errorf(agent.CodeInvalidInput, "files of session %s can't be copied to %s: neither is the other's parent", in.From, in.To)
	}
	if len(in.Parts) > agent.MaxFiles {
		return agent.Errorf(agent.CodeInvalidInput, "%d files are to be copied, and %d at most are", len(in.Parts), agent.MaxFiles)
	}
	before, n, room := len(done.Load().Parts), 0, loop.MaxPassed
	for _, p := range in.Parts {
		if p.File == nil || p.File.Session != in.From {
			continue
		}
		room -= p.File.Size // also for one that was copied before: the limit is the same in each attempt
		if n++; n <= before {
			continue
		}
		copied := agent.Part{Type: agent.PartText, Text: lacking(p.File, "it is too large to be copied with the others")}
		if room >= 0 {
			var err error
			if copied, err = copyFile(ctx, d.Log, in.To, p); err != nil {
				return err
			}
		}
		// A heartbeat may read the old list meanwhile.
		done.Store(&CopiedFiles{Parts: append(slices.Clone(done.Load().Parts), copied)})
	}
	return nil
}

// copyFile returns a part with a copy of its file that another session has, or the text that stands
// for a file that is gone.
func copyFile(ctx context.Context, log *store.Log, to string, p agent.Part) (agent.Part, error) {
	var copied *agent.File
	err := patiently(ctx, func() error {
		data, err := log.File(ctx, p.File)
		if err == nil {
			copied, err = log.PutFile(ctx, to, p.File.Name, p.File.MediaType, data)
		}
		return err
	})
	switch {
	case errors.Is(err, agent.CodeChunkMissing):
		return agent.Part{Type: agent.PartText, Text: lacking(p.File, "it was deleted")}, nil
	case errors.Is(err, agent.CodeChunkDamaged):
		return agent.Part{Type: agent.PartText, Text: lacking(p.File, "it is damaged")}, nil
	case err != nil:
		return p, fmt.Errorf("copying a file to session %s: %w", to, err)
	}
	return agent.Part{Type: agent.PartFile, Text: p.Text, File: copied}, nil
}

// directlyBelow reports whether a session is that of a run's sub-agent.
func directlyBelow(child, parent string) bool {
	name, below := strings.CutPrefix(child, parent+"/")
	return below && parent != "" && name != "" && !strings.Contains(name, "/")
}

// conversation is what a model has read.
type conversation struct {
	log     *store.View
	entries []store.Entry
	in      ModelInput
}

// filesTime is how long the files that one reply or summary names are looked for. The reply is paid, so it must
// not wait without end for a store that is away. The time is shorter than the margin that the workflow
// adds to the activity's timeout: a reply that comes late must not be lost.
const filesTime = 10 * time.Second

// findFiles adds to a reply the files that it gives back, passes on and shows again. It adds to the
// reply's argument errors what is wrong with a name.
func (d *Activities) findFiles(ctx context.Context, have conversation, spec *agent.Spec, reply *wire.Reply) {
	ctx, stop := context.WithTimeout(ctx, filesTime)
	defer stop()
	said := agent.Message{Parts: reply.Parts}
	calls := said.ToolCalls()
	if len(calls) == 0 {
		reply.Returned = d.returned(ctx, have, said.Text())
	}
	reply.Files, reply.ArgumentErrors = d.passedOn(ctx, have, spec, calls, reply.ArgumentErrors)
	reply.ShownFiles = d.shownFiles(ctx, have, spec, calls)
}

// passedOn returns the files that each call of a reply passes on, by the names that the model wrote,
// and those that a call of finish gives back. It adds to the calls' faults what is wrong with a name.
// Only here is the conversation at hand.
func (d *Activities) passedOn(ctx context.Context, have conversation, spec *agent.Spec, calls []agent.ToolCall, faults []string) (passed [][]agent.File, _ []string) {
	for i, c := range calls {
		if c.Tool == agent.FinishTool && spec.Completion == agent.CompletionTool {
			passed = withAt(passed, len(calls), i, d.returned(ctx, have, string(c.Arguments)))
		}
		t, _ := spec.Tool(c.Tool)
		names := loop.NamedFiles(c.Arguments)
		if !loop.PassesFiles(t) || len(names) > agent.MaxFiles { // the run refuses more
			continue
		}
		var files []agent.File
		for _, name := range names {
			p, err := d.findFile(ctx, have, name)
			if err != nil {
				if i >= len(faults) || faults[i] == "" {
					faults = withAt(faults, len(calls), i, "Not done: "+messageOf(err)+".")
				}
				files = nil
				break
			}
			files = append(files, *p.File)
		}
		if len(files) > 0 {
			passed = withAt(passed, len(calls), i, files)
		}
	}
	return passed, faults
}

// withAt returns a list of n elements, which is empty or has them already, with one of them set.
func withAt[T any](list []T, n, i int, one T) []T {
	if len(list) < n {
		list = make([]T, n)
	}
	list[i] = one
	return list
}

// flowFiles returns files that a flow's function passes on or gives back, as files of the session
// itself. wrong says why it may not: a function may have read a file from a text, which anybody can
// have written.
func (d *Activities) flowFiles(ctx context.Context, session string, k *kept, files []agent.File) (own []agent.File, wrong string, err error) {
	if len(files) > agent.MaxFiles {
		return nil, fmt.Sprintf("%d files are too many: at most %d are passed on or given back", len(files), agent.MaxFiles), nil
	}
	for _, f := range files {
		if !k.journal.Shows(f) {
			return nil, fmt.Sprintf("%s is no file of the flow's input, or of a result of its steps", f.String()), nil
		}
		if f.Session != session { // a fork has it from another session
			p, err := copyFile(ctx, d.Log, session, agent.Part{Type: agent.PartFile, File: &f})
			if err != nil {
				return nil, "", err
			}
			if p.File == nil {
				return nil, p.Text, nil
			}
			f = *p.File
		}
		own = append(own, f)
	}
	return own, "", nil
}

// filesLen returns about how long files are in JSON.
func filesLen(files []agent.File) (n int) {
	for _, f := range files {
		n += len(f.Session) + len(f.MediaType) + 2*len(f.Name) + fileFrame
	}
	return n
}

// fileFrame is what a file has in JSON beside its texts, in bytes.
const fileFrame = 180

// returned returns the files that an answer gives back: those that the run's tools have shown, if the
// answer has their handles, or their names with an ending. Of several with one name, the last one
// counts. Files that the run was sent are known to whoever reads the answer.
func (d *Activities) returned(ctx context.Context, have conversation, text string) (files []agent.File) {
	var shown []agent.Part
	seen, names, handles := map[string]bool{}, map[string]bool{}, handlesOf(text)
	for _, e := range have.entries {
		switch {
		case e.Role == agent.RoleTool || e.Note == agent.NoteSummary: // a summary names files of tools, too
			shown = append(shown, e.FileParts()...)
		default:
			for _, f := range e.Files() {
				seen[f.Digest] = true
			}
		}
	}
	for _, p := range slices.Backward(shown) {
		f := p.File
		named := !names[f.Name] && mentions(text, f.Name)
		names[f.Name] = true
		if seen[f.Digest] || !named && !handles.have(f) || len(files) == agent.MaxFiles {
			continue
		}
		seen[f.Digest] = true
		if own, err := d.ownFile(ctx, have.in.Session, p); err == nil {
			files = append(files, *own.File)
		}
	}
	slices.Reverse(files) // as they were shown
	return files
}

// minName is how long a name is, in bytes, that an answer is searched for.
const minName = 4

// mentions reports whether a text has a name as a word. The name needs an ending: a tool may call its
// file "with". A name with digits after it is the handle of one file, and no mention of others.
func mentions(text, name string) bool {
	if len(name) < minName || !hasEnding(name) {
		return false
	}
	inWord := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' || r == '-' }
	for at := strings.Index(text, name); at >= 0; {
		before, _ := utf8.DecodeLastRuneInString(text[:at])
		after, _ := utf8.DecodeRuneInString(text[at+len(name):])
		if !inWord(before) && !inWord(after) && !handleEnd.MatchString(text[at+len(name):]) {
			return true
		}
		next := strings.Index(text[at+1:], name)
		if next < 0 {
			return false
		}
		at += 1 + next
	}
	return false
}

// hasEnding reports whether a name ends as "map.pdf" does. A tool may also call its file "v1.2", or as
// the handle of another file.
func hasEnding(name string) bool {
	end := path.Ext(name)
	return strings.ContainsFunc(end, unicode.IsLetter) && !strings.ContainsFunc(end[1:], func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// How many digits of a file's digest are a handle in an answer.
const minDigits, maxDigits = 8, 64

var (
	handleForm = regexp.MustCompile(fmt.Sprintf(`#[0-9a-f]{%d,%d}`, minDigits, maxDigits))
	// handleEnd matches what follows the name in a handle, also in one with too few digits.
	handleEnd = regexp.MustCompile(`^#[0-9a-fA-F]+\b`)
)

// handles are the digits of the handles in a text.
type handles map[string]bool

func handlesOf(text string) handles {
	all := handles{}
	for _, h := range handleForm.FindAllString(text, -1) {
		all[h[1:]] = true
	}
	return all
}

// have reports whether a file's handle is among them.
func (h handles) have(f *agent.File) bool {
	for n := minDigits; n <= min(maxDigits, len(f.Digest)); n++ {
		if h[f.Digest[:n]] {
			return true
		}
	}
	return false
}

// messageOf returns what an error says, without its code.
func messageOf(err error) string {
	var e *agent.Error
	if errors.As(err, &e) {
		return e.Message
	}
	return err.Error()
}
