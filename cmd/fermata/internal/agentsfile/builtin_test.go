package agentsfile

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/loop"
	"github.com/fermata-agents/fermata/internal/memory"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/tool/mcp"
	"github.com/fermata-agents/fermata/tool/web"
	"github.com/fermata-agents/fermata/tool/workspace"
)

// anyServer and anyAgent stand for names of the user's own.
const anyServer, anyAgent = "SERVER", "NAME"

// section is a part of the page of tools.
type section struct {
	title, text string
	tools       []agent.ToolSpec
}

// The page of built-in tools says what the tools' own descriptions and schemas say, and has
// every tool that a rule may name.
func TestThePageOfToolsIsMadeOfTheSpecs(t *testing.T) {
	own := map[string]agent.ToolSpec{}
	for _, spec := range loop.OwnTools(agent.Spec{Definition: agent.Definition{
		Tools: ownTools, Agents: []agent.SubAgent{{Agent: anyAgent}}, Lifecycle: true, Completion: agent.CompletionTool, ToolSearch: &agent.ToolSearch{}, Notebook: &agent.NotebookPolicy{},
		Recovery: agent.Recovery{agent.FailureUnable: {Do: agent.RecoverHandoff}},
	}}) {
		own[spec.Name] = spec
	}
	take := func(names ...string) (list []agent.ToolSpec) {
		for _, name := range names {
			require.Contains(t, own, name)
			list = append(list, own[name])
			delete(own, name)
		}
		return list
	}
	children := slices.DeleteFunc(slices.Sorted(maps.Keys(own)), func(name string) bool { return !strings.HasPrefix(name, "subagent") })
	sections := []section{
		{"Files and commands", "An agent has those of them that its `tools` name. They work in the [workspace](agents-file.md#the-file), and [What holds programs](tools.md#what-holds-programs) says what commands may do.", placeSpecs(t)},
		{"The web", "An agent has it if its `tools` name it. The file's [web](agents-file.md#the-web) names the hosts that may be fetched; without it nothing may be. [Pages of the web](tools.md#pages-of-the-web) says more.", webSpecs(t)},
		{"Artifacts", "An agent has it if its `tools` name it. [Artifacts](tools.md#artifacts) says more.", []agent.ToolSpec{tool.SaveArtifact().Spec()}},
		{"Notebook", "An agent has it with `notebook: {}`. [The notebook](memory.md#the-notebook) says more.", take(agent.NotebookTool)},
		{"Memory", "An agent has it if its `tools` name it. [Memory over sessions](memory.md#memory-over-sessions) says more.", []agent.ToolSpec{memory.Spec}},
		{"Steps", "An agent has it if its `tools` name it. `fermata show SESSION --todo` and `client.Todo` show the list. It lasts over suspensions and the runs of a session. A fork has the list of its checkpoint.", []agent.ToolSpec{tool.Todo().Spec()}},
		{"People and time", "An agent has those of them that its `tools` name, and most agents have `await_resumption` [without that](holding.md#who-may-park). The run is suspended meanwhile, for months if need be.", take(agent.AskUserTool, agent.AwaitResumptionTool, agent.WaitForUserTool)},
		{"Progress", "An agent has it if its `tools` name it. `fermata run`, `show` and `tree` show what it reports, and so does the event `progress.reported`. Nothing else follows from it.", take(agent.ReportProgressTool)},
		{"Files of the conversation", "An agent with other tools has it from when a summary has replaced files of the conversation, or newer files leave them no room. No setting is needed. [Files](tools.md#a-file-once-more) says more.", []agent.ToolSpec{loop.ShowFileTool(&agent.Spec{})}},
		{"Many tools", "An agent has it with `tool_search` or `tool_narrowing`. [Many tools](tools.md#many-tools) says more.", take(agent.ToolSearchTool)},
		{"Ending", "An agent has them with `completion: tool`; `return_unable` needs [`recovery.unable`](recovery.md), too. If the agent has an `output` schema, that is the schema of the arguments of `finish`.", take(agent.FinishTool, agent.ReturnUnableTool)},
		{"Sub-agents", "An agent has `subagent__NAME` for each entry of its `agents`, and the others, with the argument `background`, if `lifecycle` is true too. A child [that is suspended](holding.md#when-a-sub-agents-owner-fails) may bring the others, without that argument.", take(children...)},
		{"MCP servers", "An agent with `mcp:SERVER` has all tools of that server. With `resources: true` it has three more, if the server has resources or prompts. A server with `oauth` that lists its tools only to people who have signed in has `SERVER__sign_in` until then.", serverSpecs(t)},
	}
	require.Empty(t, own, "they have no section")
	var out strings.Builder
	out.WriteString("# Built-in tools\n\n" +
		"These are the tools that an agent can have without code of your own. The tests generate this page from the tools' own descriptions and schemas, which the model reads.\n\n" +
		"Two kinds of tools are not here. [Client tools](agents-file.md#a-client-tool) are yours. The tools under [`server_tools`](agents-file.md#a-model) of a model, `web_search` and `code_execution`, are the provider's: it carries them out within a model call, and no rule sees them.\n\n" +
		"| column | |\n|---|---|\n" +
		"| class | what `class` of a [rule](agents-file.md#a-rule) matches the tool |\n" +
		"| asks for approval | what can make a call wait for an [approval](holding.md#approvals-and-rules): `rules`, `default: ask` of the agent, `tools` of the file. No tool asks without them |\n" +
		"| time limit | how long one attempt may take |\n" +
		"| after a crash | what becomes of a call that was under way |\n")
	for _, s := range sections {
		s.write(t, &out)
	}
	for _, name := range (&File{}).knownTools() {
		require.Contains(t, out.String(), "`"+name+"`", "a rule may name it")
	}
	committed(t, out.String(), docs+"built-in-tools.md")
}

// The page of texts is made of the one table of texts (HA-54).
func TestThePageOfTexts(t *testing.T) {
	var out strings.Builder
	out.WriteString("# Texts that a model reads\n\n" +
		"These are the runtime's own texts that tell a model what to do. An agent replaces them by name under [`texts`](agents-file.md#an-agent):\n\n" +
		"```yaml\nagents:\n  clerk:\n    model: anthropic/claude-sonnet-5\n    completion: tool\n    texts:\n      nudge: Go on. Call finish when the last invoice is booked.\n```\n\n" +
		"A name that is not here is refused when the file is read. A name in braces stands for a value of the moment; a text may leave it out. Another name in braces is refused, unless it has a space or a quote, as JSON has. No text decides anything. `-` as a `loop_contract_…`, as `worktree`, `own_directory` or `resume_note` leaves that text out; for another text it is refused.\n\n" +
		"Results that only say a fact, such as `Tool not found`, can't be replaced, nor can arguments' descriptions. `nudge` and `compaction.instructions` of the agent work as before. The tests generate this page.\n")
	for _, text := range agent.Texts() {
		fmt.Fprintf(&out, "\n## %s\n\nIt %s. At most %d bytes.%s\n\n%s\n", text.Name, text.Use, text.Max, placeholders(text), "> "+strings.ReplaceAll(text.Words, "\n", "\n> "))
	}
	committed(t, out.String(), docs+"texts.md")
}

// placeholders are the sentence about the values that a text may name.
func placeholders(text agent.TextInfo) string {
	var names []string
	for _, name := range text.Values() {
		names = append(names, "`{"+name+"}`")
	}
	if len(names) == 0 {
		return ""
	}
	return " It may name " + strings.Join(names, " and ") + "."
}

func (s section) write(t *testing.T, out *strings.Builder) {
	fmt.Fprintf(out, "\n## %s\n\n%s\n\n| tool | carried out by | class | asks for approval | time limit | after a crash |\n|---|---|---|---|---|---|\n", s.title, s.text)
	for _, spec := range s.tools {
		fmt.Fprintf(out, "| `%s` | %s | %s | %s | %s | %s |\n", spec.Name, by(spec), class(spec), approval(spec), limit(spec), crash(spec))
	}
	for _, spec := range s.tools {
		fmt.Fprintf(out, "\n### %s\n\n%s\n", spec.Name, spec.Description)
		var input jsonschema.Schema
		require.NoError(t, json.Unmarshal(spec.Input, &input))
		rows := arguments(t, spec.Name, "", &input)
		if len(rows) == 0 {
			out.WriteString("\nIt has no arguments.\n")
			continue
		}
		out.WriteString("\n| argument | type | |\n|---|---|---|\n" + strings.Join(rows, ""))
	}
}

// arguments are the rows of a schema's properties, those that are required first.
func arguments(t *testing.T, tool, at string, s *jsonschema.Schema) (rows []string) {
	names := slices.Sorted(maps.Keys(s.Properties))
	slices.SortStableFunc(names, func(a, b string) int {
		first := func(name string) int { return (slices.Index(s.Required, name) + len(names) + 1) % (len(names) + 1) }
		return first(a) - first(b)
	})
	for _, name := range names {
		p := s.Properties[name]
		require.NotEmpty(t, p.Description, "%s: the argument %s%s has no description", tool, at, name)
		kind := typeOf(p)
		if slices.Contains(s.Required, name) {
			kind += ", required"
		}
		rows = append(rows, fmt.Sprintf("| `%s%s` | %s | %s |\n", at, name, kind, strings.ToUpper(p.Description[:1])+p.Description[1:]))
		rows = append(rows, arguments(t, tool, at+name+".", p)...)
		if p.Items != nil {
			rows = append(rows, arguments(t, tool, at+name+"[].", p.Items)...)
		}
	}
	return rows
}

func typeOf(s *jsonschema.Schema) string {
	kind := s.Type
	for _, one := range s.Types {
		if one != "null" {
			kind = one
		}
	}
	switch {
	case s.Enum != nil:
		return quoted(s.Enum)
	case kind == "array":
		return "list of " + typeOf(s.Items) + "s"
	}
	return kind
}

// What is said of a tool follows from how the runtime treats its spec.

func by(s agent.ToolSpec) string {
	switch {
	case s.Executor == agent.ExecutorRuntime:
		return "the run itself"
	case s.Executor == agent.ExecutorSubAgent:
		return "a child run"
	case s.Local:
		return "a worker, within the workflow's task"
	}
	return "a worker, as an activity"
}

func class(s agent.ToolSpec) string {
	switch {
	case agent.Rule{Do: agent.RulingDeny, Class: agent.ClassReads}.Covers(s):
		return "`reads`: it changes nothing"
	case agent.Rule{Do: agent.RulingDeny, Class: agent.ClassWrites}.Covers(s):
		return "`writes`"
	}
	return "none"
}

func approval(s agent.ToolSpec) string {
	var by []string
	for _, way := range []struct {
		name string
		can  bool
	}{
		{"`rules`", agent.Rule{Do: agent.RulingAsk}.Covers(s)}, {"`default: ask`", agent.Rule{Do: agent.RulingAsk, Otherwise: true}.Covers(s)},
		{"`tools`", (&File{servers: map[string]serverEntry{anyServer: {}}}).callable(s.Name)},
	} {
		if way.can {
			by = append(by, way.name)
		}
	}
	if len(by) == 0 {
		return "never; a rule can deny it by name"
	}
	return strings.Join(by, ", ")
}

func limit(s agent.ToolSpec) string {
	switch {
	case s.Executor == agent.ExecutorSubAgent:
		return "the sub-agent's limits"
	case s.Executor == agent.ExecutorRuntime:
		return "none"
	case s.Timeout == 0:
		return "10m"
	}
	return s.Timeout.String()
}

func crash(s agent.ToolSpec) string {
	switch {
	case s.Executor != "":
		return "it goes on"
	case s.Attempts > 1:
		return fmt.Sprintf("it is made again, %d attempts in all", s.Attempts)
	}
	return "the model reads that its outcome is unknown"
}

func placeSpecs(t *testing.T) (list []agent.ToolSpec) {
	w, err := workspace.Open(t.TempDir(), nil)
	require.NoError(t, err)
	defer w.Close()
	for _, tl := range w.Tools() {
		spec := tl.Spec()
		spec.Description = strings.TrimSpace(strings.TrimSuffix(spec.Description, w.Confinement())) // that is of this machine
		list = append(list, spec)
	}
	return list
}

func webSpecs(t *testing.T) []agent.ToolSpec {
	w, err := web.New(&web.Options{Hosts: []string{"example.com"}})
	require.NoError(t, err)
	defer w.Close()
	return []agent.ToolSpec{w.Tool().Spec()}
}

// serverSpecs are what a worker adds to a server's own tools, which has a resource and a
// prompt, and what it has of a server that nobody has signed in to.
func serverSpecs(t *testing.T) []agent.ToolSpec {
	s := sdk.NewServer(&sdk.Implementation{Name: "s", Version: "1"}, nil)
	s.AddResource(&sdk.Resource{URI: "file:///a", Name: "a"}, func(context.Context, *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		return &sdk.ReadResourceResult{}, nil
	})
	s.AddPrompt(&sdk.Prompt{Name: "p"}, func(context.Context, *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
		return &sdk.GetPromptResult{}, nil
	})
	open := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, nil))
	defer open.Close()
	list := listed(t, open.URL, &mcp.Options{Resources: true})
	for i := range list {
		list[i].Description, _, _ = strings.Cut(list[i].Description, " There are:") // those are this server's
	}
	closed := httptest.NewServer(nil)
	defer closed.Close()
	closed.Config.Handler = guarded(closed.URL)
	return append(list, listed(t, closed.URL+"/mcp", &mcp.Options{OAuth: &mcp.OAuth{Client: "fermata"}})...)
}

func listed(t *testing.T, url string, o *mcp.Options) []agent.ToolSpec {
	server := mcp.NewHTTP(anyServer, url, o)
	require.NoError(t, server.Err())
	defer server.Close()
	ctx, cancel := context.WithTimeout(tool.WithCaller(t.Context(), "s-1", "r-1"), time.Minute)
	defer cancel()
	list, err := server.List(ctx)
	require.NoError(t, err)
	return list
}

// guarded is a server that wants a token of an authorization server, which is at the same URL.
func guarded(url string) http.Handler {
	mux := http.NewServeMux()
	said := func(path string, fields map[string]any) {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(fields)
		})
	}
	said("/.well-known/oauth-protected-resource/mcp", map[string]any{"resource": url + "/mcp", "authorization_servers": []string{url}})
	said("/.well-known/oauth-authorization-server", map[string]any{
		"issuer": url, "authorization_endpoint": url + "/authorize", "token_endpoint": url + "/token", "response_types_supported": []string{"code"}, "code_challenge_methods_supported": []string{"S256"},
	})
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+url+`/.well-known/oauth-protected-resource/mcp"`)
		w.WriteHeader(http.StatusUnauthorized)
	})
	return mux
}
