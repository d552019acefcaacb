package e2e

import (
	"bytes"
	"database/sql"
	"image"
	"image/png"
	"maps"
	"net/http"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"golang.org/x/image/bmp"
	_ "modernc.org/sqlite" // reads the server's database

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/devserver"
	"github.com/fermata-agents/fermata/internal/testenv"
)

// longWords are a message that fills the window of the test's models.
var longWords = string(bytes.Repeat([]byte("whale "), 10_000))

// What every provider answers, by the newest words of a request.
var recordedRules = []rule{
	{words: "Look at these", says: "I see."},
	{words: "Look at nothing", says: "I see."},
	{words: "Draw what sells", calls: "draw", arguments: `{"show":true}`},
	{words: "Draw for yourself", calls: "draw", arguments: `{"show":false}`},
	{words: "It is drawn.", says: "As you see."},
	{words: "What if", says: "Then so."},
	{words: "Sum up this conversation so far", says: "Two images and a report were compared, and a chart was drawn."},
	{words: "whale whale", says: "Many whales."},
	{words: "Are you there", says: "Here, too."},
}

// Every provider gets the bytes of two images, of a PDF and of a tool's chart, in every turn: over
// a worker that is killed, a fork, an export and import, and a compaction. A turn has as many events
// as without files, and one storing more if it shows new ones. A deletion leaves nothing in the
// store, the database and the logs.
func TestEveryProviderGetsFiles(t *testing.T) {
	testenv.Long(t)
	dirs := []string{filepath.Join(t.TempDir(), "here"), filepath.Join(t.TempDir(), "there")}
	var servers []*devserver.Server
	for _, dir := range dirs {
		server, err := devserver.Start(t.Context(), &devserver.Options{DataDir: dir})
		require.NoError(t, err)
		t.Cleanup(server.Stop)
		servers = append(servers, server)
	}
	var mu sync.Mutex
	content, names := canaries{}, canaries{}
	t.Run("on", func(t *testing.T) {
		for name, p := range providers {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				c := talk(t, name, p, servers[0], servers[1])
				mu.Lock()
				defer mu.Unlock()
				maps.Copy(content, c.content)
				maps.Copy(names, c.names)
			})
		}
	})
	for i, dir := range dirs {
		servers[i].Stop()
		require.Empty(t, content.in(t, dir), "bytes are in no database, not even for a time")
		require.NotEmpty(t, canaries{"the workers' task queue": []byte("anthropic-")}.in(t, dir), "the test looks where it should")
		vacuum(t, dir)
		require.Empty(t, names.in(t, dir))
	}
}

// vacuum writes the databases of a folder anew, without what was deleted.
func vacuum(t *testing.T, dir string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.db"))
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	for _, path := range paths {
		db, err := sql.Open("sqlite", path)
		require.NoError(t, err)
		_, err = db.ExecContext(t.Context(), "VACUUM; PRAGMA wal_checkpoint(TRUNCATE)")
		require.NoError(t, err)
		require.NoError(t, db.Close())
	}
}

// conversation is one with files, at one provider.
type conversation struct {
	*stage
	recordedPlace
	at    *recorder
	shown shownFiles
	// content are pieces of the files and of copies, and names what names them.
	content, names canaries
}

// id returns a session of this conversation: all providers share the servers.
func (c *conversation) id(name string) string { return c.Provider + "-" + name }

func talk(t *testing.T, name string, p provider, here, there place) *conversation {
	at := standFor(t, p, recordedRules)
	s, where := recordedStage(t, here, name, at)
	c := &conversation{stage: s, recordedPlace: where, at: at, shown: shownTo(name), content: canaries{}, names: canaries{}}
	for _, f := range c.shown.all() {
		c.content.addBytes(f.Name, f.Data)
		c.names.addNames(f)
	}
	worker := where.work(t)
	c.begins(t)
	at.holdAt("It is drawn.")
	drawn, err := s.Send(t.Context(), c.id("talk"), "Draw what sells", nil)
	require.NoError(t, err)
	<-at.held
	kill(worker)
	where.work(t)
	c.ends(t, drawn)
	asked := c.at.of("It is drawn.")
	require.Len(t, asked, 2)
	require.JSONEq(t, string(asked[0].body), string(asked[1].body), "another worker asks the same")
	c.gets(t, asked[1], true)

	c.forks(t)
	c.compacts(t)
	c.moves(t, there)
	c.goes(t)
	return c
}

// begins shows two images and a PDF, and compares the history with one without.
func (c *conversation) begins(t *testing.T) {
	run, err := c.Start(t.Context(), "tester", "Look at these", &client.StartOptions{Session: c.id("talk"), Files: c.shown.all()[:3]})
	require.NoError(t, err)
	c.ends(t, run)
	c.gets(t, c.at.of("Look at these")[0], false)
	plain, err := c.Start(t.Context(), "tester", "Look at nothing", &client.StartOptions{Session: c.id("plain")})
	require.NoError(t, err)
	c.ends(t, plain)
	c.costs(t, run, plain, storing)
}

// storing is how many events an activity has that stores a message at once. A message with files is
// stored so, since nothing else says yet that the files are needed.
const storing = 3

// costs compares histories: of files they have names, and so many events more.
func (c *conversation) costs(t *testing.T, with, without *client.Run, more int) {
	t.Helper()
	const most = 2000 // bytes, of files and events
	require.Equal(t, c.events(t, without)+more, c.events(t, with))
	require.Less(t, c.historyBytes(t, with.Session, with.ID), c.historyBytes(t, without.Session, without.ID)+most)
}

// events counts a run's events without those of workflow tasks: how many tasks there are depends on
// what comes at the same time.
func (c *conversation) events(t *testing.T, run *client.Run) (n int) {
	t.Helper()
	for _, e := range c.history(t, run.Session, run.ID) {
		switch e.EventType {
		case enums.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED, enums.EVENT_TYPE_WORKFLOW_TASK_STARTED, enums.EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
		default:
			n++
		}
	}
	return n
}

func (c *conversation) ends(t *testing.T, run *client.Run) {
	t.Helper()
	out := c.rest(t, run)
	require.Equal(t, agent.StatusCompleted, out.Status, "%v", out.Err())
}

// gets checks the files of a request: bytes, types, names and places.
func (c *conversation) gets(t *testing.T, q recorded, chart bool) {
	t.Helper()
	want := c.shown.all()
	if !chart {
		want = want[:3]
	}
	require.Len(t, q.files, len(want), q.words)
	for i, f := range q.files {
		require.Equal(t, http.DetectContentType(f.Data), f.MediaType, "file %d of %q", i, q.words)
		if i == 1 { // no provider takes a bitmap, so it is copied
			require.Equal(t, "image/png", f.MediaType)
			requireSamePixels(t, want[i].Data, f.Data)
			c.content.addBytes("the copy of "+want[i].Name, f.Data)
			continue
		}
		require.Equal(t, want[i].Data, f.Data, "file %d of %q", i, q.words)
		require.Equal(t, i == 3 && c.at.inResults, f.InResult)
	}
	require.NotZero(t, bytes.Count(q.body, []byte(c.shown.photo.Text)), "what was said of the photo")
}

func requireSamePixels(t *testing.T, bitmap, copied []byte) {
	t.Helper()
	want, err := bmp.Decode(bytes.NewReader(bitmap))
	require.NoError(t, err)
	got, err := png.Decode(bytes.NewReader(copied))
	require.NoError(t, err)
	require.Equal(t, want.Bounds(), got.Bounds())
	for y := range want.Bounds().Dy() {
		for x := range want.Bounds().Dx() {
			require.Equal(t, rgb(want, x, y), rgb(got, x, y))
		}
	}
}

func rgb(m image.Image, x, y int) [3]uint32 {
	r, g, b, _ := m.At(x, y).RGBA()
	return [3]uint32{r, g, b}
}

// forks asks again in another session, which gets the same files.
func (c *conversation) forks(t *testing.T) {
	fork, err := c.Fork(t.Context(), c.id("talk"), &client.ForkOptions{NewSession: true, Session: c.id("fork"), Text: "What if"})
	require.NoError(t, err)
	run, err := fork.Start(t.Context())
	require.NoError(t, err)
	c.ends(t, run)
	c.gets(t, c.at.of("What if")[0], true)
	without := c.says(t, "plain", "Draw for yourself")
	c.costs(t, c.says(t, "fork", "Draw what sells"), without, storing)
	c.costs(t, c.says(t, "fork", "Draw for yourself"), without, 0)
}

// says sends a message, and waits for the end of the run that has it.
func (c *conversation) says(t *testing.T, session, text string) *client.Run {
	t.Helper()
	run, err := c.Send(t.Context(), c.id(session), text, nil)
	require.NoError(t, err)
	c.ends(t, run)
	return run
}

// compacts fills the window. The summary is asked for with the files; afterwards they are still in
// the session.
func (c *conversation) compacts(t *testing.T) {
	c.says(t, "talk", longWords)
	c.gets(t, c.at.of("Sum up this conversation so far")[0], true)
	require.Empty(t, c.at.of("whale whale")[0].files, "the summary stands for them")
	require.Contains(t, string(c.at.of("whale whale")[0].body), "a chart was drawn")
	c.has(t, c.Client)
}

// has checks that a session still has all files.
func (c *conversation) has(t *testing.T, of *client.Client) {
	t.Helper()
	want := c.shown.all()
	i := 0
	for f, err := range of.Files(t.Context(), c.id("talk")) {
		require.NoError(t, err)
		data, err := of.File(t.Context(), &f.File)
		require.NoError(t, err)
		require.Equal(t, want[i].Name, f.Name)
		require.Equal(t, want[i].Data, data)
		i++
	}
	require.Len(t, want, i)
}

// moves takes the session to another cluster, where a fork from before the compaction shows the
// files again, and deletes it there.
func (c *conversation) moves(t *testing.T, there place) {
	other, where := recordedStage(t, there, c.Provider, c.at)
	_, err := other.bring(t, c.export(t, c.id("talk"), client.ExportOptions{}))
	require.NoError(t, err)
	where.work(t)
	c.has(t, other.Client)
	before, err := other.Fork(t.Context(), c.id("talk"), &client.ForkOptions{Checkpoint: c.beforeCompaction(t, other), NewSession: true, Session: c.id("kept"), Text: "Are you there"})
	require.NoError(t, err)
	run, err := before.Start(t.Context())
	require.NoError(t, err)
	c.ends(t, run)
	c.gets(t, c.at.of("Are you there")[0], true)
	c.deletes(t, other, where, c.id("talk"), run.Session)
}

// beforeCompaction returns the checkpoint at which the chart was drawn.
func (c *conversation) beforeCompaction(t *testing.T, s *stage) string {
	t.Helper()
	points, err := s.Checkpoints(t.Context(), c.id("talk"), nil)
	require.NoError(t, err)
	require.True(t, points.Items[0].Compacted)
	for _, p := range points.Items {
		if p.Turn > 0 && p.Text == "As you see." {
			return p.ID
		}
	}
	require.Fail(t, "there is no such checkpoint", "%+v", points.Items)
	return ""
}

// goes deletes the sessions here. What a fork shows stays until it is deleted, too.
func (c *conversation) goes(t *testing.T) {
	require.NotEmpty(t, c.content.in(t, filepath.Join(c.Dir, "store")), "the test looks where it should")
	c.deletes(t, c.stage, c.recordedPlace, c.id("plain"), c.id("talk"), c.id("fork"))
}

// deletes deletes sessions, after which nothing of the files is left in the store and the logs.
func (c *conversation) deletes(t *testing.T, s *stage, where recordedPlace, sessions ...string) {
	t.Helper()
	for _, session := range sessions {
		_, err := s.Delete(t.Context(), session)
		require.NoError(t, err)
	}
	require.Empty(t, c.content.in(t, where.Dir))
	require.Empty(t, c.names.in(t, where.Dir))
	// Chunks are packed, so words are not found in them.
	require.Empty(t, filesIn(t, filepath.Join(where.Dir, "store", "chunks")))
}
