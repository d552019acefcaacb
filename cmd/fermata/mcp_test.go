package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

// payments is a file of the MCP server's, with a line for each payment.
const payments = "payments"

// describing is a file with what the server says of its tool title, if it is there.
const describing = "describing"

// sorting is a named pipe that the tool sort reads to its end before it begins.
const sorting = "sorting"

// desk is the folder of MCP servers, which they may write.
func (b *bench) desk() string {
	dir := filepath.Join(b.tmp, "desk")
	require.NoError(b.t, os.MkdirAll(dir, 0o700))
	return dir
}

// serveMCP is an MCP server on standard input and output: it knows a ticket, and pays
// when a person has agreed and named an account.
func serveMCP() {
	type args struct {
		Number int `json:"number,omitempty"`
	}
	s := mcp.NewServer(&mcp.Implementation{Name: "tickets", Version: "1"}, nil)
	about, err := os.ReadFile(filepath.Join(os.Getenv(asMCP), describing))
	if err != nil {
		about = []byte("the title of a ticket")
	}
	mcp.AddTool(s, &mcp.Tool{Name: "title", Description: string(about)},
		func(context.Context, *mcp.CallToolRequest, args) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "The till is wrong"}}}, nil, nil
		})
	mcp.AddTool(s, &mcp.Tool{Name: "sort"}, func(ctx context.Context, req *mcp.CallToolRequest, _ args) (*mcp.CallToolResult, any, error) {
		_, err := os.ReadFile(filepath.Join(os.Getenv(asMCP), sorting)) // a pipe: until somebody looks on
		err = errors.Join(err, req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: req.Params.GetProgressToken(), Progress: 1, Message: "halfway"}))
		for range 20 { // each is answered, and the note is heard meanwhile
			err = errors.Join(err, req.Session.Ping(ctx, nil))
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "sorted"}}}, nil, err
	})
	s.AddTool(&mcp.Tool{Name: "pay", InputSchema: json.RawMessage(`{"type":"object"}`)}, payBill)
	_ = s.Run(context.Background(), &mcp.StdioTransport{}) // its end is the client's to choose
}

func payBill(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if req.Params.RequestState == "" {
		return &mcp.CallToolResult{RequestState: "asked", InputRequests: mcp.InputRequestMap{
			"a": &mcp.ElicitParams{Message: "Pay 800 EUR?", RequestedSchema: json.RawMessage(`{"type":"object","properties":{"pay":{"type":"boolean"},"why":{"type":"string"}},"required":["pay"]}`)},
			"b": &mcp.ElicitParams{Message: "From which account?", RequestedSchema: json.RawMessage(`{"type":"object","properties":{"account":{"type":"string"}},"required":["account"]}`)},
		}}, nil
	}
	told, err := json.Marshal(req.Params.InputResponses)
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(os.Getenv(asMCP), payments), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	fmt.Fprintf(f, "%s\n", told)
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "paid"}}}, nil
}

// An MCP server asks people, and all processes are killed while they think.
func TestServerThatAsks(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.write("fermata.yaml", `
as_root: true
agents: {payer: {model: "script:payer.yaml", tools: ["mcp:bank"]}}
mcp: {bank: {command: ["`+os.Args[0]+`"], env: {`+asMCP+`: "`+b.desk()+`"}, write: ["`+b.desk()+`"], elicit: rounds}}
`)
	b.write("payer.yaml", "replies:\n  - {calls: [{tool: bank__pay}]}\n  - {text: \"Done.\"}\n")
	dev := b.start("dev")
	dev.until("ready")
	r := b.run("run", "payer", "Pay.", "--session", "s-1", "--detach")
	require.Zero(t, r.exit, r.err)
	for _, q := range []struct {
		text   string
		answer []string
	}{
		{"Pay 800 EUR?", []string{"--request", "q-1", "--result", `{"pay":true}`}}, {"From which account?", []string{"--request", "q-2", "giro"}},
	} {
		r = b.run("wait", "s-1", "--timeout", "1m")
		require.Contains(t, r.out+r.err, q.text)
		require.Equal(t, -1, dev.end(syscall.SIGKILL).exit)
		dev = b.start("dev")
		dev.until("ready")
		r = b.run(append([]string{"answer", "s-1"}, q.answer...)...)
		require.Zero(t, r.exit, r.err)
	}
	r = b.run("wait", "s-1", "--timeout", "1m")
	require.Zero(t, r.exit, r.err)
	require.Contains(t, r.out, "Done.\n")
	paid, err := os.ReadFile(filepath.Join(b.desk(), payments))
	require.NoError(t, err)
	require.Equal(t, `{"a":{"action":"accept","content":{"pay":true}},"b":{"action":"accept","content":{"account":"giro"}}}`+"\n", string(paid))
	require.Zero(t, dev.end(syscall.SIGTERM).exit)
}

// Doctor asks the servers that agents use for their tools, and run begins without an
// optional one.
func TestDoctorAsksServers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.write("fermata.yaml", `
as_root: true
agents: {clerk: {model: "script:clerk.yaml", tools: ["mcp:bank", "mcp:gone", "mcp:far"]}}
mcp:
  bank: {command: ["`+os.Args[0]+`"], env: {`+asMCP+`: "`+b.desk()+`"}, write: ["`+b.desk()+`"], start_timeout: 1m, call_timeout: 30s}
  gone: {command: [no-such-program], optional: true}
  far: {url: "http://127.0.0.1:1/mcp", optional: true, start_timeout: 100ms}
`)
	b.write("clerk.yaml", "replies:\n  - {text: \"Done.\"}\n")
	r := b.run("doctor")
	require.Regexp(t, `(?m)^ok +mcp +bank lists 3 tools; the kernel confines it to its own files, without network$`, r.out)
	require.Regexp(t, `(?m)^warn +mcp +the MCP server gone can't be started .*: executable file not found in \$PATH; runs start without its tools$`, r.out)
	require.Regexp(t, `(?m)^warn +mcp +the MCP server far can't be reached .*; runs start without its tools$`, r.out)
	r = b.run("run", "clerk", "Hello.")
	require.Zero(t, r.exit, r.err)
	require.Contains(t, r.out, "Done.")

	b.write("fermata.yaml", `
as_root: true
agents: {clerk: {model: "script:clerk.yaml", tools: ["mcp:far"]}}
mcp: {far: {url: "http://127.0.0.1:1/mcp", start_timeout: 100ms}}
`)
	r = b.run("doctor")
	require.NotZero(t, r.exit)
	require.Regexp(t, `(?m)^FAIL +mcp +the MCP server far can't be reached`, r.out)
}

// Programs hear of a tool's progress too, after its call.
func TestProgressAsJSON(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.write("fermata.yaml", `
as_root: true
agents: {clerk: {model: "script:clerk.yaml", tools: ["mcp:bank"]}}
mcp: {bank: {command: ["`+os.Args[0]+`"], env: {`+asMCP+`: "`+b.desk()+`"}, write: ["`+b.desk()+`"]}}
`)
	b.write("clerk.yaml", "replies:\n  - {calls: [{tool: bank__sort}]}\n  - {text: \"Done.\"}\n")
	require.NoError(t, syscall.Mkfifo(filepath.Join(b.desk(), sorting), 0o600))
	p := b.start("run", "clerk", "Sort.", "--json")
	p.until("{") // it follows the run
	require.NoError(t, os.WriteFile(filepath.Join(b.desk(), sorting), nil, 0))
	r := p.wait()
	require.Zero(t, r.exit, r.err)
	var types []string
	for line := range strings.Lines(r.out) {
		var e struct {
			Type string
			Data struct{ Call, Text string }
		}
		require.NoError(t, json.Unmarshal([]byte(line), &e))
		if types = append(types, e.Type); e.Type == "call.progress" {
			require.Equal(t, "t1.1 1: halfway", e.Data.Call+" "+e.Data.Text)
		}
	}
	require.Contains(t, strings.Join(types, " "), "call.started call.progress ")
}
