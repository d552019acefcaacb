//go:build unix

package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// serve tells the test binary to be an MCP server, and which.
const serve = "MCP_TEST_SERVER"

func TestMain(m *testing.M) {
	if kind := os.Getenv(serve); kind != "" {
		servers[kind]()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

var servers = map[string]func(){
	"usual":   func() { run(usual()) },
	"mute":    func() { read(func(string) {}) },
	"failing": func() { fail(4, "first line", "no such ticket file", "token "+os.Getenv("TOKEN")) },
	"strict":  strict,
	"modern":  modern,
	"nameless": func() {
		run(listing("a.b", "a_b", "plain", "sub/ölig", strings.Repeat("long", 30), strings.Repeat("long", 31), "_x"))
	},
	"many":     func() { run(listing(names(1001)...)) },
	"endless":  endless,
	"stubborn": stubborn,
	"chatty":   chatty,
	"deaf":     deaf,
	"closing":  closing,
	"odd":      odd,
	"flood":    flood,
	"web":      web,
	"changing": changing,
	"lasting":  lasting,
	"asking":   asking,
	"bare":     bare,
	"wanting":  wanting,
	"asks":     asks,
	"neither":  neither,
	"results":  func() { run(results()) },
	"spewing": func() {
		respond := answer(map[string]string{"initialize": initialized, "tools/list": oneTool, "tools/call": oneAnswer})
		read(func(line string) {
			if strings.Contains(line, "tools/call") {
				out, errs := bufio.NewWriter(os.Stdout), bufio.NewWriter(os.Stderr)
				for i := range 100_000 {
					fmt.Fprintln(out, "no message", i)
					fmt.Fprintln(errs, "a remark", i)
				}
				out.Flush()
				errs.Flush()
			}
			respond(line)
		})
	},
	"remembering": func() { run(remembering()) },
	"skilled":     func() { run(aShelf().server()) },
	"reaching":    reaching,
	"instructing": func() {
		words := "Look before you pay.\nBe brief: no.\r\n" + strings.Repeat("é", 5000)
		s := sdk.NewServer(&sdk.Implementation{Name: "instructing", Version: "1"}, &sdk.ServerOptions{Instructions: words})
		sdk.AddTool(s, &sdk.Tool{Name: "look", Title: "Look around", Description: "Looks."}, func(context.Context, *sdk.CallToolRequest, input) (*sdk.CallToolResult, any, error) {
			return text("looked"), nil, nil
		})
		run(s)
	},
	"welcoming": func() {
		fmt.Fprintln(os.Stderr, "Welcome to 1.0")
		respond := answer(map[string]string{"initialize": initialized, "tools/list": oneTool})
		read(func(line string) {
			if strings.Contains(line, "tools/call") {
				os.Exit(5)
			}
			respond(line)
		})
	},
}

func fail(status int, words ...string) {
	for _, w := range words {
		fmt.Fprintln(os.Stderr, w)
	}
	os.Exit(status)
}

func run(s *sdk.Server) {
	if err := s.Run(context.Background(), &sdk.StdioTransport{}); err != nil && !strings.Contains(err.Error(), "EOF") {
		fail(1, err.Error())
	}
}

func read(f func(line string)) {
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		f(in.Text())
	}
}

type input struct {
	Text string `json:"text,omitempty"`
}

type handler = func(context.Context, *sdk.CallToolRequest, input) (*sdk.CallToolResult, any, error)

func content(c ...sdk.Content) *sdk.CallToolResult { return &sdk.CallToolResult{Content: c} }

func text(s string) *sdk.CallToolResult { return content(&sdk.TextContent{Text: s}) }

// usual is a server as there are many; its tools do what their names say.
func usual() *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "usual", Version: "1"}, &sdk.ServerOptions{PageSize: 2})
	add := func(name string, h handler) {
		sdk.AddTool(s, &sdk.Tool{Name: name, Description: "does " + name}, h)
	}
	sdk.AddTool(s, &sdk.Tool{Name: "look", Description: strings.Repeat("é", 5000), Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true}},
		func(context.Context, *sdk.CallToolRequest, input) (*sdk.CallToolResult, any, error) {
			return text("looked"), nil, nil
		})
	add("echo", func(_ context.Context, req *sdk.CallToolRequest, in input) (*sdk.CallToolResult, any, error) {
		return content(&sdk.TextContent{Text: in.Text}, &sdk.TextContent{Text: fmt.Sprint(req.Params.Meta["com.github.fermata-agents/idempotency-key"])}), nil, nil
	})
	add("pid", func(context.Context, *sdk.CallToolRequest, input) (*sdk.CallToolResult, any, error) {
		return text(fmt.Sprint(os.Getpid())), nil, nil
	})
	add("environment", func(context.Context, *sdk.CallToolRequest, input) (*sdk.CallToolResult, any, error) {
		dir, _ := os.Getwd()
		return text(strings.Join(append(os.Environ(), "in "+dir), "\n")), nil, nil
	})
	add("fail", func(context.Context, *sdk.CallToolRequest, input) (*sdk.CallToolResult, any, error) {
		return nil, nil, fmt.Errorf("no such ticket")
	})
	add("fail_silently", func(context.Context, *sdk.CallToolRequest, input) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{}, IsError: true}, nil, nil
	})
	add("nothing", func(context.Context, *sdk.CallToolRequest, input) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{}}, nil, nil
	})
	addMedia(add)
	addTrouble(add)
	return s
}

func addMedia(add func(string, handler)) {
	add("media", func(context.Context, *sdk.CallToolRequest, input) (*sdk.CallToolResult, any, error) {
		size := int64(7)
		return content(
			&sdk.ImageContent{MIMEType: "image/png", Data: []byte("12345")},
			&sdk.TextContent{Text: "a\x00b"},
			&sdk.AudioContent{MIMEType: "audio/wav", Data: []byte("123")},
			&sdk.ResourceLink{Name: "log", URI: "file:///log", MIMEType: "text/plain", Size: &size},
			&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "file:///t", Text: "embedded"}},
			&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "file:///b", MIMEType: "x/y", Blob: []byte("12")}},
		), nil, nil
	})
	add("structured", func(context.Context, *sdk.CallToolRequest, input) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.ImageContent{MIMEType: "image/png", Data: []byte("1")}}, StructuredContent: map[string]any{"id": 7}}, nil, nil
	})
	add("large", func(context.Context, *sdk.CallToolRequest, input) (*sdk.CallToolResult, any, error) {
		return text(strings.Repeat("x", 1<<20)), nil, nil
	})
}

func addTrouble(add func(string, handler)) {
	add("die", func(_ context.Context, _ *sdk.CallToolRequest, in input) (*sdk.CallToolResult, any, error) {
		fail(3, "the disk is gone", "token "+os.Getenv("TOKEN"))
		return nil, nil, nil
	})
	add("noise", func(context.Context, *sdk.CallToolRequest, input) (*sdk.CallToolResult, any, error) {
		fmt.Fprint(os.Stderr, "\xff\x00\x1b[2J", strings.Repeat("noise", 100_000), "\n")
		fmt.Println("a library says hello on stdout " + os.Getenv("TOKEN") + "\n\n{\"not\": \"a message\"}\n[1,2]")
		return text("still here"), nil, nil
	})
	// hang writes two files: when it has begun, and when it was cancelled.
	add("hang", func(ctx context.Context, _ *sdk.CallToolRequest, in input) (*sdk.CallToolResult, any, error) {
		os.WriteFile(in.Text+".begun", nil, 0o644)
		<-ctx.Done()
		os.WriteFile(in.Text+".cancelled", nil, 0o644)
		return nil, nil, ctx.Err()
	})
	// progress tells of it until it is cancelled.
	add("progress", func(ctx context.Context, req *sdk.CallToolRequest, in input) (*sdk.CallToolResult, any, error) {
		for i, note := range []string{"halfway", ""} {
			req.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{
				ProgressToken: req.Params.GetProgressToken(), Progress: float64(i + 1), Total: float64(2 - 2*i), Message: note,
			})
		}
		<-ctx.Done()
		return nil, nil, ctx.Err()
	})
	// fork leaves a process behind that does not listen to SIGTERM.
	add("fork", func(context.Context, *sdk.CallToolRequest, input) (*sdk.CallToolResult, any, error) {
		child := exec.Command("/bin/sh", "-c", `trap "" TERM; while :; do sleep 1; done`)
		child.Stdout, child.Stderr = os.Stdout, os.Stderr
		if err := child.Start(); err != nil {
			return nil, nil, err
		}
		return text(fmt.Sprint(child.Process.Pid)), nil, nil
	})
}

// remembering has a tool that says all that it was told.
func remembering() *sdk.Server {
	var told []string
	s := sdk.NewServer(&sdk.Implementation{Name: "remembering", Version: "1"}, nil)
	sdk.AddTool(s, &sdk.Tool{Name: "remember"}, func(_ context.Context, _ *sdk.CallToolRequest, in input) (*sdk.CallToolResult, any, error) {
		told = append(told, in.Text)
		return text(strings.Join(told, ",")), nil, nil
	})
	return s
}

func names(n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprintf("t%d", i))
	}
	return list
}

// listing has tools that say their own names.
func listing(names ...string) *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "names", Version: "1"}, nil)
	for _, name := range names {
		s.AddTool(&sdk.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)}, func(_ context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return text("I am " + req.Params.Name), nil
		})
	}
	return s
}

// message is what the servers below, which are made by hand, understand.
type message struct {
	ID     any    `json:"id"`
	Method string `json:"method"`
}

// answer answers requests by their method; a method that is missing is an error.
func answer(results map[string]string) func(line string) {
	return func(line string) {
		var m message
		if json.Unmarshal([]byte(line), &m) != nil || m.ID == nil {
			return
		}
		if result, ok := results[m.Method]; ok {
			fmt.Printf(`{"jsonrpc":"2.0","id":%v,"result":%s}`+"\n", m.ID, result)
			return
		}
		fmt.Printf(`{"jsonrpc":"2.0","id":%v,"error":{"code":-32601,"message":"no %s here"}}`+"\n", m.ID, m.Method)
	}
}

const (
	initialized = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}`
	oneTool     = `{"tools":[{"name":"one","inputSchema":{"type":"object"}}]}`
	oneAnswer   = `{"content":[{"type":"text","text":"done"}]}`
)

// strict ends when the first that it hears is not initialize.
func strict() {
	first := true
	respond := answer(map[string]string{"initialize": initialized, "tools/list": oneTool, "tools/call": oneAnswer})
	read(func(line string) {
		if first && !strings.Contains(line, `"initialize"`) {
			fail(1, "expected initialize")
		}
		first = false
		respond(line)
	})
}

// neither ends whatever it hears first, each time for another reason.
func neither() {
	read(func(line string) {
		if strings.Contains(line, `"initialize"`) {
			fail(2, "no licence")
		}
		fail(1, "expected initialize")
	})
}

// modern knows no initialize any more.
func modern() {
	read(answer(map[string]string{
		"server/discover": `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`,
		"tools/list":      `{"resultType":"complete","tools":[{"name":"one","inputSchema":{"type":"object"}}]}`,
		"tools/call":      `{"resultType":"complete","content":[{"type":"text","text":"done"}]}`,
	}))
}

// endless has always one more page.
func endless() {
	read(answer(map[string]string{"initialize": initialized, "tools/list": `{"tools":[],"nextCursor":"again"}`}))
}

// odd has tools with schemas that are none.
func odd() {
	read(answer(map[string]string{"initialize": initialized, "tools/call": `{"content":7}`, "tools/list": fmt.Sprintf(
		`{"tools":[{"name":"none"},{"name":"string","inputSchema":{"type":"string"}},{"name":"bool","inputSchema":true},null,`+
			`{"name":"good","inputSchema":{"type":"object"}},{"name":"good","inputSchema":{"type":"object"}},{"name":"","inputSchema":{"type":"object"}},`+
			`{"name":"large","inputSchema":{"type":"object","description":"%s"}}]}`, strings.Repeat("x", 70_000))}))
}

// stubborn neither ends with its input nor by SIGTERM.
func stubborn() {
	signal.Ignore(syscall.SIGTERM)
	read(answer(map[string]string{"initialize": initialized, "tools/list": oneTool, "tools/call": fmt.Sprintf(`{"content":[{"type":"text","text":"%d"}]}`, os.Getpid())}))
	select {}
}

// chatty says much before it is asked, in one batch too.
func chatty() {
	fmt.Println("Welcome to chatty 1.0!")
	fmt.Println(`[{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}},{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}]`)
	read(answer(map[string]string{"initialize": initialized, "tools/list": oneTool, "tools/call": oneAnswer}))
}

// deaf reads nothing after it has listed its tools.
func deaf() {
	listed := false
	respond := answer(map[string]string{"initialize": initialized, "tools/list": oneTool})
	in := bufio.NewReader(os.Stdin)
	for !listed {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		respond(line)
		listed = strings.Contains(line, "tools/list")
	}
	select {}
}

// closing closes its output when it is called, and lives on.
func closing() {
	respond := answer(map[string]string{"initialize": initialized, "tools/list": oneTool})
	read(func(line string) {
		if strings.Contains(line, "tools/call") {
			os.Stdout.Close()
			return
		}
		respond(line)
	})
	<-time.After(time.Hour)
}

// flood answers a call with more than anybody wants to read, and is there to tell.
func flood() {
	respond := answer(map[string]string{"initialize": initialized, "tools/list": oneTool})
	read(func(line string) {
		if strings.Contains(line, "tools/call") {
			fmt.Printf(`{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"%s"}]}}`+"\n", strings.Repeat("x", 17<<20))
			return
		}
		respond(line)
	})
}

// reaching is a server that does what it is told: it runs commands and opens connections.
func reaching() {
	s := sdk.NewServer(&sdk.Implementation{Name: "reaching", Version: "1"}, nil)
	sdk.AddTool(s, &sdk.Tool{Name: "sh"}, func(ctx context.Context, _ *sdk.CallToolRequest, in input) (*sdk.CallToolResult, any, error) {
		out, err := exec.CommandContext(ctx, "/bin/sh", "-c", in.Text).CombinedOutput()
		if err != nil {
			return text("failed: " + err.Error() + string(out)), nil, nil
		}
		return text("went: " + string(out)), nil, nil
	})
	sdk.AddTool(s, &sdk.Tool{Name: "dial"}, func(_ context.Context, _ *sdk.CallToolRequest, in input) (*sdk.CallToolResult, any, error) {
		network, address, _ := strings.Cut(in.Text, " ")
		c, err := net.Dial(network, address)
		if err != nil {
			return text("failed: " + err.Error()), nil, nil
		}
		return text("went"), nil, c.Close()
	})
	run(s)
}
