package flow_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/flow"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
)

// paint shows a document with the name that it gets.
func paint(ctx context.Context, c *tool.Call, in struct{ Name string }) (map[string]int, error) {
	return map[string]int{"pages": 2}, c.AddFile(ctx, agent.FileInput{Name: in.Name, Data: []byte("%PDF-1.4 " + in.Name)})
}

type pages struct {
	Pages int `json:"pages"`
}

// painter is a stage with a flow and the tool paint.
func painter(t *testing.T, f flow.Flow) *testsuite.Env {
	return testsuite.New(t, &testsuite.Options{Worker: &worker.Options{Flows: []flow.Flow{f}, Tools: []tool.Tool{tool.New("paint", "paints", paint, nil)}}})
}

var photo = client.FileInput{Name: "photo.pdf", Data: []byte("%PDF-1.4 photo")}

// A flow gets the files of its input and of its steps as values, the same ones after a wait, and gives
// back those that it returns.
func TestAFlowGetsAndReturnsFiles(t *testing.T) {
	var seen [][]agent.File
	f := flow.New("album", func(c flow.Context, in flow.WithFiles[pages]) (flow.WithFiles[pages], error) {
		out := flow.WithFiles[pages]{Value: in.Value, Files: in.Files}
		drawn, err := flow.Tool[flow.WithFiles[pages]](c, "paint", map[string]string{"Name": "map.pdf"}, nil)
		if err != nil {
			return out, err
		}
		out.Value.Pages += drawn.Value.Pages
		out.Files = append(out.Files, drawn.Files...)
		own, err := flow.Do(c, "own", func(ctx context.Context, c *tool.Call) (string, error) {
			return "done", c.AddFile(ctx, agent.FileInput{Name: "own.pdf", Data: []byte("%PDF-1.4 own")})
		}, nil)
		if err != nil {
			return out, err
		}
		seen = append(seen, out.Files)
		if _, err := flow.Ask[string](c, own+"?", nil); err != nil {
			return out, err
		}
		return out, nil
	}, &flow.Options{Tools: []string{"paint"}})
	s := painter(t, f)
	run := s.Start("album", `{"pages":1}`, &client.StartOptions{Files: []client.FileInput{photo}})
	run.Suspended()
	run.Answer("yes")
	out := run.Completed()
	require.JSONEq(t, `{"pages":3}`, string(out.Output))
	require.Len(t, out.Files, 2)
	require.Equal(t, "photo.pdf", out.Files[0].Name)
	require.Equal(t, "map.pdf", out.Files[1].Name)
	require.Equal(t, "application/pdf", out.Files[1].MediaType)
	require.Equal(t, run.Session, out.Files[1].Session)
	require.GreaterOrEqual(t, len(seen), 2, "it ran again after the wait")
	for _, files := range seen {
		require.Equal(t, out.Files, files)
	}
}

// Code of the flow's own returns a value beside the files that it adds. Files that it returns are no
// way to add some.
func TestDoReturnsAValueWithFiles(t *testing.T) {
	type both struct {
		Pages pages  `json:"pages"`
		Text  string `json:"text"`
	}
	f := flow.New("own", func(c flow.Context, in flow.WithFiles[string]) (flow.WithFiles[both], error) {
		var out flow.WithFiles[both]
		counted, err := flow.Do(c, "count", func(ctx context.Context, c *tool.Call) (flow.WithFiles[pages], error) {
			return flow.WithFiles[pages]{Value: pages{7}, Files: in.Files}, c.AddFile(ctx, agent.FileInput{Name: "own.pdf", Data: []byte("%PDF-1.4 own")})
		}, nil)
		if err != nil {
			return out, err
		}
		said, err := flow.Do(c, "say", func(context.Context, *tool.Call) (flow.WithFiles[string], error) {
			return flow.WithFiles[string]{Value: "hello"}, nil
		}, nil)
		return flow.WithFiles[both]{Value: both{counted.Value, said.Value}, Files: append(counted.Files, said.Files...)}, err
	}, nil)
	out := painter(t, f).Start("own", "go", &client.StartOptions{Files: []client.FileInput{photo}}).Completed()
	require.JSONEq(t, `{"pages":{"pages":7},"text":"hello"}`, string(out.Output))
	require.Len(t, out.Files, 1)
	require.Equal(t, "own.pdf", out.Files[0].Name)
}

// A flow that takes no files fails if it is started with some: it would complete without them.
func TestAFlowThatTakesNoFilesFailsWithSome(t *testing.T) {
	f := flow.New("plain", func(_ flow.Context, in string) (string, error) { return in, nil }, nil)
	s := painter(t, f)
	require.Equal(t, "go", s.Start("plain", "go", nil).Completed().Text)
	out := s.Start("plain", "go", &client.StartOptions{Files: []client.FileInput{photo}}).Ended()
	require.Equal(t, agent.StatusFailed, out.Status)
	require.Equal(t, agent.CodeInvalidInput, out.Error.Code)
	require.Contains(t, out.Error.Message, "the run was started with 1 files, and the flow plain takes none")
}

// A file that a function has read from a text, and that no step has shown, is nobody's to give.
func TestAFlowReturnsOnlyFilesThatItWasShown(t *testing.T) {
	f := flow.New("thief", func(_ flow.Context, in agent.File) (flow.WithFiles[string], error) {
		return flow.WithFiles[string]{Files: []agent.File{in}}, nil
	}, nil)
	stolen := `{"session":"victim","digest":"` + digest('a') + `","size":5,"media_type":"image/png","name":"x.png"}`
	out := painter(t, f).Start("thief", stolen, nil).Ended()
	require.Equal(t, agent.CodeFlowFailed, out.Error.Code)
	require.Contains(t, out.Error.Message, "x.png#aaaaaaaa (image/png, 5 bytes) is no file of the flow's input, or of a result of its steps")
}

func digest(c byte) string {
	b := make([]byte, 64)
	for i := range b {
		b[i] = c
	}
	return string(b)
}

// A rehearsal has files, too, and sees which ones an agent gets.
func TestRehearseWithFiles(t *testing.T) {
	f := flow.New("relay", func(c flow.Context, in flow.WithFiles[string]) (flow.WithFiles[string], error) {
		in.Value = "Read " + in.Value
		return flow.Agent[flow.WithFiles[string]](c, "reader", in, nil)
	}, &flow.Options{Agents: []agent.SubAgent{{Agent: "reader"}}})
	given, back := agent.File{Session: "s", Digest: digest('a'), Name: "in.pdf"}, agent.File{Session: "s", Digest: digest('b'), Name: "out.pdf"}
	r := testsuite.Rehearse(t, f, flow.WithFiles[any]{Value: "this", Files: []agent.File{given}}, func(s testsuite.RehearsedStep) (any, error) {
		require.Equal(t, []agent.File{given}, s.Files)
		require.JSONEq(t, `{"task":"Read this","files":["`+given.Digest+`"]}`, string(s.Arguments))
		return flow.WithFiles[any]{Value: "read", Files: []agent.File{back}}, nil
	})
	require.NoError(t, r.Err)
	require.Equal(t, "read", r.Text)
	require.Equal(t, []agent.File{back}, r.Files)
}

// A rehearsal also takes values with files whose type the test knows, and runs code that stores files.
func TestRehearseWithTypedFiles(t *testing.T) {
	f := flow.New("typed", func(c flow.Context, in flow.WithFiles[pages]) (flow.WithFiles[pages], error) {
		own, err := flow.Do(c, "own", func(ctx context.Context, c *tool.Call) (flow.WithFiles[pages], error) {
			if err := c.SaveArtifact(ctx, agent.FileInput{Name: "report.md", Data: []byte("# Report")}); err != nil {
				return flow.WithFiles[pages]{}, err
			}
			return flow.WithFiles[pages]{Value: pages{5}}, c.AddFile(ctx, agent.FileInput{Name: "own.pdf", Data: []byte("%PDF-1.4 own")})
		}, nil)
		if err != nil {
			return own, err
		}
		drawn, err := flow.Tool[flow.WithFiles[pages]](c, "paint", nil, nil)
		all := append(append(in.Files, own.Files...), drawn.Files...)
		return flow.WithFiles[pages]{Value: pages{in.Value.Pages + own.Value.Pages + drawn.Value.Pages}, Files: all}, err
	}, &flow.Options{Tools: []string{"paint"}})
	given, drawn := agent.File{Session: "s", Digest: digest('a'), Name: "in.pdf"}, agent.File{Session: "s", Digest: digest('b'), Name: "map.pdf"}
	r := testsuite.Rehearse(t, f, flow.WithFiles[pages]{Value: pages{1}, Files: []agent.File{given}}, func(s testsuite.RehearsedStep) (any, error) {
		if s.Name == "own" {
			return s.Do(t.Context())
		}
		return flow.WithFiles[pages]{Value: pages{2}, Files: []agent.File{drawn}}, nil
	})
	require.NoError(t, r.Err)
	require.JSONEq(t, `{"pages":8}`, string(r.Output))
	require.Len(t, r.Files, 3)
	require.Equal(t, given, r.Files[0])
	require.Equal(t, "own.pdf", r.Files[1].Name)
	require.Equal(t, "application/pdf", r.Files[1].MediaType)
	require.Equal(t, drawn, r.Files[2])

	plain := flow.New("plain", func(_ flow.Context, in string) (string, error) { return in, nil }, nil)
	r = testsuite.Rehearse(t, plain, flow.WithFiles[string]{Value: "go", Files: []agent.File{given}}, nil)
	require.ErrorIs(t, r.Err, agent.CodeInvalidInput)
}
