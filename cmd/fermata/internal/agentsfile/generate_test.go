package agentsfile

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/flow"
	"github.com/fermata-agents/fermata/internal/flowfile"
)

// group is a type of the file with keys of its own: a definition of the schema, and a section
// of the page.
type group struct {
	of          reflect.Type
	name, title string
	at          string // where it stands in the file
}

var groups = []group{
	{reflect.TypeFor[document](), "", "The file", ""},
	{reflect.TypeFor[agent.Definition](), "agent", "An agent", "agents.NAME"},
	{reflect.TypeFor[agent.Limits](), "limits", "Limits", "agents.NAME.limits"},
	{reflect.TypeFor[agent.AdaptiveLimit](), "adaptive_limit", "An adaptive limit", "agents.NAME.limits.adaptive"},
	{reflect.TypeFor[agent.Remedy](), "remedy", "A remedy", "agents.NAME.recovery.KIND"},
	{reflect.TypeFor[agent.Reminder](), "reminder", "A reminder", "agents.NAME.reminders[]"},
	{reflect.TypeFor[agent.LoopDetection](), "loop_detection", "Loop detection", "agents.NAME.loop_detection"},
	{reflect.TypeFor[agent.Rule](), "rule", "A rule", "agents.NAME.rules[]"},
	{reflect.TypeFor[agent.AnswerTimeouts](), "answer_timeouts", "Answer timeouts", "agents.NAME.answer_timeouts"},
	{reflect.TypeFor[agent.SubAgent](), "sub_agent", "A sub-agent", "agents.NAME.agents[]"},
	{reflect.TypeFor[agent.OwnWorkspace](), "own_workspace", "A workspace of its own", "agents.NAME.agents[].workspace"},
	{reflect.TypeFor[agent.ToolSpec](), "client_tool", "A client tool", "agents.NAME.client_tools[]"},
	{reflect.TypeFor[agent.CompactionPolicy](), "compaction", "Compaction", "agents.NAME.compaction"},
	{reflect.TypeFor[agent.ReasoningPolicy](), "reasoning_policy", "A policy of reasoning", "agents.NAME.reasoning_policy"},
	{reflect.TypeFor[agent.NotebookPolicy](), "notebook", "A notebook", "agents.NAME.notebook"},
	{reflect.TypeFor[agent.Verify](), "verify", "Verification", "agents.NAME.verify"},
	{reflect.TypeFor[agent.Hooks](), "hooks", "Hooks", "agents.NAME.hooks"},
	{reflect.TypeFor[agent.RunHooks](), "run_hooks", "Hooks before a run", "agents.NAME.hooks.before_run"},
	{reflect.TypeFor[agent.CallHooks](), "call_hooks", "Hooks before calls", "agents.NAME.hooks.before_calls"},
	{reflect.TypeFor[agent.TurnHooks](), "turn_hooks", "Hooks after a turn", "agents.NAME.hooks.after_turn"},
	{reflect.TypeFor[agent.HookList](), "hook_list", "Hooks at a point", "agents.NAME.hooks.before_resume"},
	{reflect.TypeFor[agent.Check](), "check", "A check", "agents.NAME.verify.checks[]"},
	{reflect.TypeFor[agent.Judge](), "judge", "A judge", "agents.NAME.verify.checks[].judge"},
	{reflect.TypeFor[agent.Cadence](), "cadence", "A cadence", "agents.NAME.verify.checks[].cadence"},
	{reflect.TypeFor[agent.Skip](), "skip", "A judge that is passed over", "agents.NAME.hooks.before_calls.checks[].skip"},
	{reflect.TypeFor[agent.Daemon](), "daemon", "A daemon", "agents.NAME.daemon"},
	{reflect.TypeFor[agent.SkillMatch](), "skill_match", "Matching of skills", "agents.NAME.skill_match"},
	{reflect.TypeFor[agent.TurnPolicy](), "turn_policy", "The form of a turn", "agents.NAME.turn_policy"},
	{reflect.TypeFor[agent.ToolSearch](), "tool_search", "Tools that are found", "agents.NAME.tool_search"},
	{reflect.TypeFor[agent.ToolNarrowing](), "tool_narrowing", "Tools that are not used", "agents.NAME.tool_narrowing"},
	{reflect.TypeFor[flowfile.Definition](), "flow", "A flow", "flows.NAME"},
	{reflect.TypeFor[flowfile.Step](), "step", "A step", "flows.NAME.steps[]"},
	{reflect.TypeFor[flowfile.Wait](), "wait", "A wait", "flows.NAME.steps[].wait"},
	{reflect.TypeFor[flowfile.Map](), "map", "A map", "flows.NAME.steps[].map"},
	{reflect.TypeFor[flowfile.Repeat](), "repeat", "A repeat", "flows.NAME.steps[].repeat"},
	{reflect.TypeFor[modelEntry](), "model", "A model", "models.NAME"},
	{reflect.TypeFor[agent.Price](), "price", "A price", "models.NAME.price"},
	{reflect.TypeFor[rateEntry](), "rate", "A rate", "rates.NAME"},
	{reflect.TypeFor[agent.DailyLimits](), "daily", "Daily limits", "daily"},
	{reflect.TypeFor[serverEntry](), "server", "An MCP server", "mcp.NAME"},
	{reflect.TypeFor[oauthEntry](), "oauth", "Signing in", "mcp.NAME.oauth"},
	{reflect.TypeFor[exchangeEntry](), "exchange", "An identity provider", "mcp.NAME.oauth.exchange"},
	{reflect.TypeFor[toolEntry](), "tool", "A tool", "tools.NAME"},
	{reflect.TypeFor[agent.ToolApproval](), "approval", "An approval", "tools.NAME.approval"},
	{reflect.TypeFor[shellEntry](), "shell", "The shell", "shell"},
	{reflect.TypeFor[webEntry](), "web", "The web", "web"},
}

// What Go's types do not say, by group and key. TestTheParserAndTheSchemaAgree holds it to the
// parser.
var (
	required = map[string][]string{
		"": {"agents"}, "agent": {"model"}, "sub_agent": {"agent"}, "check": {"name"}, "client_tool": {"name"}, "rule": {"do"}, "remedy": {"do"}, "reminder": {"text"}, "model": {"provider", "model"}, "tool": {"approval"},
		"flow": {"steps"}, "map": {"over", "steps"}, "repeat": {"most", "steps"}, "step.agent": {"task"}, "step.generate": {"model"},
	}
	// least is 1 for whole numbers that are not here. Zero is never taken, but for fields that are
	// pointers: see mayBeZero.
	least = map[string]float64{"agent.nudges": -1, "agent.repairs": -1, "loop_detection.cycles": 2, "loop_detection.results": 2, "loop_detection.parallel": 2, "loop_detection.idle": 2}
	most  = map[string]float64{"cadence.every": 1000, "cadence.after_turns": 1000, "cadence.max_invocations": 1000, "skip.last_turns": 1000, "skip.attempts": 1000, "remedy.times": 100, "loop_detection.cycles": 10, "loop_detection.results": 100, "loop_detection.parallel": 100, "loop_detection.idle": 100, "adaptive_limit.initial": 10_000, "adaptive_limit.max": 10_000, "adaptive_limit.extend_by": 10_000, "adaptive_limit.shrink_by": 10_000,
		"limits.agents": 10_000, "limits.depth": 16, "agent.temperature": 2, "compaction.threshold": 1, "daemon.queue": 1000, "notebook.remind": 1000, "skill_match.top_n": agent.MaxActiveSkills, "daemon.topics": 8, "daemon.watch": 8, "step.attempts": 100, "map.width": 128, "repeat.most": 1000}
	// anyNumber may be below zero, and notEmpty are lists and objects that have an entry.
	anyNumber = []string{"compaction.keep_last", "verify.max", "call_hooks.max"}
	notEmpty  = []string{"agent.ceiling", "sub_agent.tools", "verify.checks", "daemon.watch", "call_hooks.checks", ".agents", ".daily", "rule.approvers", "approval.approvers", "server.command", "flow.steps", "step.if", "step.parallel", "step.choose", "step.steps", "map.steps", "repeat.until", "repeat.steps"}
	enums     = map[string][]string{
		"agent.on_loop": {string(agent.LimitActionFail), string(agent.LimitActionAsk)}, "flow.on_limit": {string(agent.LimitActionFail), string(agent.LimitActionAsk)},
		"remedy.then":  {string(agent.RecoverAsk), string(agent.RecoverHandoff), string(agent.RecoverFail)},
		"rule.confirm": {agent.ConfirmDigest}, "approval.confirm": {agent.ConfirmDigest},
		"rule.default": {agent.DefaultReject, agent.DefaultApprove}, "approval.default": {agent.DefaultReject, agent.DefaultApprove},
		"step.confirm":   {agent.ConfirmDigest},
		"model.provider": slices.Sorted(maps.Keys(providerFields)),
	}
	defaults = map[string]any{
		"agent.default": agent.RulingAllow, "agent.on_limit": agent.LimitActionFail, "agent.on_loop": agent.LimitActionFail, "agent.on_child_suspend": agent.ChildSuspendWait,
		"flow.default": agent.RulingAllow, "flow.on_limit": agent.LimitActionFail, "step.on_unknown": flow.OnUnknownAsk,
		"rule.default": agent.DefaultReject, "approval.default": agent.DefaultReject, ".workspace": ".", "reminder.propagate": agent.PropagateNone, "skill_match.sticky": true, "skill_match.strategy": agent.SkillsByMetadata, "skill_match.top_n": 1,
	}
	patterns = map[string]string{"agent.name": agentName, "check.name": agentName, "check.agent": agentName, "sub_agent.agent": agentName, "client_tool.name": `^[A-Za-z][A-Za-z0-9_-]{0,63}$`, "step.name": stepName, "step.agent": agentName, "map.as": stepName, "wait.at": timeOrPath}
	names    = map[string]*jsonschema.Schema{
		".agents": {Pattern: agentName}, ".flows": {Pattern: agentName}, ".mcp": {Pattern: `^[A-Za-z](_?[A-Za-z0-9-])*$`, MaxLength: jsonschema.Ptr(64)},
		"agent.recovery": {Enum: kindsOfFailures()}, "agent.texts": {Enum: anys(textNames())},
		".models": {Not: &jsonschema.Schema{Enum: anys(slices.Sorted(maps.Keys(providerFields)))}},
	}
)

const (
	agentName = `^[a-z][a-z0-9_]{0,31}$`
	stepName  = `^[A-Za-z_][A-Za-z0-9_-]{0,63}$`
	// timeOrPath is a time, a day, or a text with a path.
	timeOrPath = `\$\{|^[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2}))?$`
	notBlank   = `\S`
	duration   = `^([0-9]{1,5}d)?(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))*$`
)

func textNames() (names []string) {
	for _, t := range agent.Texts() {
		names = append(names, string(t.Name))
	}
	return names
}

// generator makes the schema from the types.
type generator struct {
	t        *testing.T
	comments comments
	filled   map[string]any // defaults that the code fills in, by group and key
}

func newGenerator(t *testing.T) *generator {
	g := &generator{t, comments{map[string]string{}, map[string][]string{}, map[string]string{}, map[string]bool{}}, filledIn(t)}
	maps.Copy(g.filled, defaults)
	return g
}

// filledIn are the defaults of an agent that every profile has.
func filledIn(t *testing.T) map[string]any {
	same := map[string]any{}
	for i, profile := range profiles {
		raw, err := json.Marshal(agent.Definition{Profile: profile, Daemon: &agent.Daemon{}, ReasoningPolicy: &agent.ReasoningPolicy{}, ToolNarrowing: &agent.ToolNarrowing{}}.WithDefaults())
		require.NoError(t, err)
		var tree map[string]any
		require.NoError(t, json.Unmarshal(raw, &tree))
		tree["profile"] = agent.ProfileToolUsing
		found := map[string]any{}
		for key, value := range tree {
			if below, ok := value.(map[string]any); ok {
				for k, v := range below {
					found[key+"."+k] = v
				}
				continue
			}
			found["agent."+key] = value
		}
		for key, value := range found {
			if value == "" {
				delete(found, key)
			}
		}
		if i == 0 {
			same = found
		}
		maps.DeleteFunc(same, func(key string, value any) bool { return !reflect.DeepEqual(found[key], value) })
	}
	return same
}

var profiles = []agent.Profile{agent.ProfileToolUsing, agent.ProfileResearcher, agent.ProfileVerifier, agent.ProfileCompleter}

// whole is the schema of the file.
func (g *generator) whole() *jsonschema.Schema {
	root := g.group(groups[0])
	root.Schema, root.Title, root.Defs = "https://json-schema.org/draft/2020-12/schema", "Fermata's agents file", map[string]*jsonschema.Schema{}
	for _, one := range groups[1:] {
		root.Defs[one.name] = g.group(one)
	}
	// The YAML language server reports an anyOf of true and an object wrongly.
	approval := root.Defs["approval"]
	approval.Type, approval.Types, approval.Not = "", []string{"object", "boolean"}, &jsonschema.Schema{Const: jsonschema.Ptr[any](false)}
	remedy := root.Defs["remedy"] // or the name of an action
	remedy.Type, remedy.Types, remedy.Pattern = "", []string{"object", "string"}, "^("+strings.Join(textsIn(remedy.Properties["do"].Enum), "|")+")$"
	root.Defs["duration"] = &jsonschema.Schema{
		Type: "string", Description: "A time above zero, such as 90s, 1h30m or 7d.", Pattern: duration, AllOf: []*jsonschema.Schema{{Pattern: "[1-9]"}},
	}
	root.Defs["model"].AllOf = byProvider()
	root.Defs["step"].AllOf, root.Defs["step"].OneOf = byKind()
	root.Defs["check"].OneOf = []*jsonschema.Schema{{Required: []string{"tool"}}, {Required: []string{"command"}}, {Required: []string{"agent", "task"}}, {Required: []string{"judge"}}}
	root.Defs["server"].OneOf = []*jsonschema.Schema{{Required: []string{"command"}}, {Required: []string{"url"}}}
	return root
}

// byProvider refuses keys of a model that its provider has not.
func byProvider() (list []*jsonschema.Schema) {
	for _, provider := range slices.Sorted(maps.Keys(providerFields)) {
		list = append(list, &jsonschema.Schema{
			If:   &jsonschema.Schema{Properties: map[string]*jsonschema.Schema{"provider": {Const: jsonschema.Ptr[any](provider)}}},
			Then: &jsonschema.Schema{PropertyNames: &jsonschema.Schema{Enum: anys(slices.Concat(commonFields, providerFields[provider]))}},
		})
	}
	return list
}

// byKind refuses steps without a kind and with several, and keys that belong to other kinds.
func byKind() (all, one []*jsonschema.Schema) {
	for _, kind := range slices.Sorted(maps.Keys(flowfile.Keys)) {
		has := &jsonschema.Schema{Required: []string{kind}}
		one = append(one, has)
		keys := slices.Concat([]string{kind, "name", "if"}, flowfile.Keys[kind])
		all = append(all, &jsonschema.Schema{If: has, Then: &jsonschema.Schema{Required: required["step."+kind], PropertyNames: &jsonschema.Schema{Enum: anys(keys)}}})
	}
	return all, one
}

func kindsOfFailures() (out []any) {
	for _, kind := range agent.FailureKinds() {
		out = append(out, string(kind))
	}
	return out
}

func textsIn(list []any) (out []string) {
	for _, v := range list {
		out = append(out, v.(string))
	}
	return out
}

func anys(list []string) (out []any) {
	for _, s := range list {
		out = append(out, s)
	}
	return out
}

func (g *generator) group(of group) *jsonschema.Schema {
	s := &jsonschema.Schema{
		Type: "object", Description: g.comments.text(g.t, of.of, ""), Required: required[of.name], Properties: map[string]*jsonschema.Schema{},
		AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}},
	}
	g.fields(s, of.name, of.of)
	return s
}

// fields adds the keys of a struct, and of those in it that have no key of their own.
func (g *generator) fields(s *jsonschema.Schema, group string, of reflect.Type) {
	for f := range of.Fields() {
		key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && key == "":
			g.fields(s, group, f.Type)
		case key == "" || group == "client_tool" && !slices.Contains(clientToolKeys, key):
		default:
			s.Properties[key] = g.field(group+"."+key, of, f)
			s.PropertyOrder = append(s.PropertyOrder, key)
		}
	}
}

func (g *generator) field(path string, of reflect.Type, f reflect.StructField) *jsonschema.Schema {
	s := g.typed(f.Type)
	switch path {
	case "model.body", "step.arguments", "check.arguments":
		s = &jsonschema.Schema{Type: "object"}
	case "map.over":
		s = &jsonschema.Schema{Types: []string{"array", "string"}, Pattern: `^\$\{.*\}$`}
	}
	s.Description = g.comments.text(g.t, of, f.Name)
	if list := providersOf(path); list != "" {
		s.Description += " Only for " + list + "."
	}
	if list := enums[path]; list != nil {
		s.Enum, s.Pattern = anys(list), ""
	}
	if list := f.Tag.Get("enum"); list != "" && s.Type == "string" {
		s.Enum, s.Pattern = anys(strings.Split(list, ",")), ""
	}
	s.Pattern, s.PropertyNames = cmp.Or(patterns[path], s.Pattern), names[path]
	g.bounds(s, path, mayBeZero(of, f))
	g.byDefault(s, path, f)
	return s
}

// providersOf lists the providers whose models alone have a key.
func providersOf(path string) string {
	key, of := strings.CutPrefix(path, "model.")
	if !of || slices.Contains(commonFields, key) {
		return ""
	}
	var list []string
	for _, provider := range slices.Sorted(maps.Keys(providerFields)) {
		if slices.Contains(providerFields[provider], key) {
			list = append(list, provider)
		}
	}
	if last := len(list) - 1; last > 0 {
		list = []string{strings.Join(list[:last], ", ") + " and " + list[last]}
	}
	return list[0]
}

// mayBeZero reports whether a number may be written as zero: a pointer tells it from a key that is left
// out, and a price of zero is free.
func mayBeZero(of reflect.Type, f reflect.StructField) bool {
	return f.Type.Kind() == reflect.Pointer || of == reflect.TypeFor[agent.Price]()
}

func (g *generator) bounds(s *jsonschema.Schema, path string, mayBeZero bool) {
	max, bounded := most[path]
	min, low := least[path]
	switch {
	case slices.Contains(notEmpty, path) && s.Type == "array":
		s.MinItems = jsonschema.Ptr(1)
		if bounded {
			s.MaxItems = jsonschema.Ptr(int(max))
		}
	case slices.Contains(notEmpty, path):
		s.MinProperties = jsonschema.Ptr(1)
	case bounded && s.Type == "array":
		s.MaxItems = jsonschema.Ptr(int(max))
	case s.Type == "integer" || s.Type == "number":
		switch {
		case slices.Contains(anyNumber, path):
		case mayBeZero:
			s.Minimum = jsonschema.Ptr(0.0)
		case low:
			s.Minimum = jsonschema.Ptr(min)
		case s.Type == "integer":
			s.Minimum = jsonschema.Ptr(1.0)
		default:
			s.ExclusiveMinimum = jsonschema.Ptr(0.0)
		}
		if !mayBeZero && s.ExclusiveMinimum == nil && (s.Minimum == nil || *s.Minimum < 0) {
			s.Not = &jsonschema.Schema{Const: jsonschema.Ptr[any](0)}
		}
		if bounded {
			s.Maximum = jsonschema.Ptr(max)
		}
	}
}

func (g *generator) byDefault(s *jsonschema.Schema, path string, f reflect.StructField) {
	value, known := g.filled[path]
	text := f.Tag.Get("default")
	switch {
	case text == "true":
		value = true
	case text != "":
		value = text
	case !known && s.Type == "boolean" && f.Type.Kind() != reflect.Pointer:
		value = false
	case !known || s.Ref != "" && s.Ref != "#/$defs/duration":
		return
	}
	raw, err := json.Marshal(value)
	require.NoError(g.t, err)
	s.Default = raw
}

// typed is the schema of a type.
func (g *generator) typed(of reflect.Type) *jsonschema.Schema {
	for _, one := range groups {
		if one.of == of {
			return &jsonschema.Schema{Ref: "#/$defs/" + one.name}
		}
	}
	switch of {
	case reflect.TypeFor[agent.Duration]():
		return &jsonschema.Schema{Ref: "#/$defs/duration"}
	case reflect.TypeFor[agent.USD]():
		return &jsonschema.Schema{Type: "number"}
	case reflect.TypeFor[flowfile.Value]():
		return &jsonschema.Schema{Types: []string{"object", "array", "string", "number", "boolean"}, Pattern: notBlank}
	case reflect.TypeFor[flowfile.Conditions]():
		return &jsonschema.Schema{Type: "object", AdditionalProperties: &jsonschema.Schema{Type: "object"}}
	case reflect.TypeFor[json.RawMessage](): // but for a model's body, see field
		return &jsonschema.Schema{Types: []string{"object", "boolean"}}
	case reflect.TypeFor[agent.OneOf]():
		name := func() *jsonschema.Schema { return &jsonschema.Schema{Type: "string", Pattern: notBlank} }
		return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{name(), {Type: "array", Items: name()}}}
	}
	switch of.Kind() {
	case reflect.Pointer:
		return g.typed(of.Elem())
	case reflect.Slice:
		return &jsonschema.Schema{Type: "array", Items: g.typed(of.Elem())}
	case reflect.Map:
		return &jsonschema.Schema{Type: "object", AdditionalProperties: g.typed(of.Elem())}
	case reflect.Bool:
		return &jsonschema.Schema{Type: "boolean"}
	case reflect.Int, reflect.Int64:
		return &jsonschema.Schema{Type: "integer"}
	case reflect.Float64:
		return &jsonschema.Schema{Type: "number"}
	}
	require.Equal(g.t, reflect.String, of.Kind(), "%s has no schema yet", of)
	if of == reflect.TypeFor[string]() {
		return &jsonschema.Schema{Type: "string", Pattern: notBlank}
	}
	g.comments.of(g.t, of)
	values := g.comments.constants[of.String()]
	require.NotEmpty(g.t, values, "%s has no constants", of)
	return &jsonschema.Schema{Type: "string", Enum: anys(values)}
}

// quoted are values of an enum for people.
func quoted(list []any) string {
	var out []string
	for _, v := range list {
		out = append(out, "`"+v.(string)+"`")
	}
	return strings.Join(out, ", ")
}

// plain is a JSON value for people: a string without its quotes.
func plain(raw json.RawMessage) string {
	if text, err := strconv.Unquote(string(raw)); err == nil {
		return text
	}
	return string(raw)
}

// kind is the type of a key for people.
func (g *generator) kind(s *jsonschema.Schema) string {
	switch {
	case s.Ref == "#/$defs/duration":
		return "duration"
	case s.Ref != "":
		for _, one := range groups {
			if "#/$defs/"+one.name == s.Ref {
				return "[" + strings.ToLower(one.title[:1]) + one.title[1:] + "](#" + strings.ReplaceAll(strings.ToLower(one.title), " ", "-") + ")"
			}
		}
	case s.Enum != nil:
		return quoted(s.Enum)
	case s.AnyOf != nil:
		return "string or list of strings"
	case slices.Contains(s.Types, "string") && len(s.Types) == 2:
		return "list, or a path"
	case len(s.Types) > 2:
		return "any value"
	case s.Types != nil:
		return "JSON Schema"
	case s.Type == "array":
		return "list of " + g.kinds(s.Items)
	case s.Type == "object" && s.AdditionalProperties != nil && s.AdditionalProperties.Type == "object":
		return "by path, JSON Schema"
	case s.Type == "object" && s.AdditionalProperties != nil:
		return "by name, " + g.kind(s.AdditionalProperties)
	case s.ExclusiveMinimum != nil && s.Maximum != nil:
		return fmt.Sprintf("%s above %v, up to %v", s.Type, *s.ExclusiveMinimum, *s.Maximum)
	case s.ExclusiveMinimum != nil:
		return fmt.Sprintf("%s above %v", s.Type, *s.ExclusiveMinimum)
	case s.Minimum != nil && s.Maximum != nil:
		return fmt.Sprintf("%s, %v to %v", s.Type, *s.Minimum, *s.Maximum)
	case s.Minimum != nil && *s.Minimum != 0:
		return fmt.Sprintf("%s from %v", s.Type, *s.Minimum)
	}
	return s.Type
}

// kinds is the type of what a list has.
func (g *generator) kinds(s *jsonschema.Schema) string {
	switch {
	case s.Type == "string" && s.Enum == nil:
		return "strings"
	case s.AnyOf != nil:
		return "strings, or of lists of strings"
	}
	return g.kind(s)
}

// profiles writes the defaults that differ by profile.
func (g *generator) profiles(out *strings.Builder) {
	out.WriteString("\nThese defaults depend on the agent's `profile`:\n\n| `profile` | `limits.own_turns` | `nudges` | `repairs` |\n|---|---|---|---|\n")
	for _, profile := range profiles {
		d := agent.Definition{Profile: profile}.WithDefaults()
		nudges := "none"
		if d.Nudges > 0 {
			nudges = strconv.Itoa(d.Nudges)
		}
		fmt.Fprintf(out, "| `%s` | %d | %s | %d |\n", profile, d.Limits.OwnTurns, nudges, d.Repairs)
	}
}
