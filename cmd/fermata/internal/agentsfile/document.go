package agentsfile

import (
	_ "embed" // for the schema
	"encoding/json"
	"reflect"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/flowfile"
)

// The comments of document's fields, and of the types below it, are the texts of the schema and
// of docs/agents-file.md.

// document is an agents file, such as fermata.yaml.
type document struct {
	// Agents are the agents, by name. A name has 1 to 32 lower-case letters, digits or "_",
	// and begins with a letter.
	Agents map[string]agent.Definition `json:"agents"`
	// Flows are flows, by name: agents whose next steps are written down. Their names are those
	// of agents, and no agent has the same.
	Flows map[string]flowfile.Definition `json:"flows"`
	// Models are models under names of your own, with their servers and prices.
	Models map[string]modelEntry `json:"models"`
	// Rates are bounds on the calls of models, by the name of a provider or a model.
	Rates map[string]rateEntry `json:"rates"`
	// Daily is what all runs of the worker's task queue may use in a day.
	Daily agent.DailyLimits `json:"daily"`
	// MCP are MCP servers, by name. An agent names all tools of one as "mcp:NAME", and all skills
	// likewise.
	MCP map[string]serverEntry `json:"mcp"`
	// Tools are tools that need an approval, by name or pattern, whichever agent calls them.
	Tools map[string]toolEntry `json:"tools"`
	// Skills are directories with skills, relative to the agents file: each is a skill, or has
	// skills as its subdirectories. An agent names the skills that it has.
	Skills []string `json:"skills"`
	// Workspace is the directory in which the tools fs_… and shell_run work and daemons watch, relative to the
	// agents file.
	Workspace string `json:"workspace"`
	// Workspaces is the directory in which sub-agents get workspaces of their own, relative to the
	// agents file; without it, one in the cache directory of the worker's user. If several machines
	// work for a task queue, they have to share it, and the workspace.
	Workspaces string `json:"workspaces"`
	// Shell says what commands of shell_run may do.
	Shell shellEntry `json:"shell"`
	// Web says what the tool web_fetch may fetch.
	Web webEntry `json:"web"`
	// AsRoot lets commands and MCP programs run as root if the worker does. Otherwise a worker
	// that is root starts none.
	AsRoot bool `json:"as_root"`
}

// parts are the keys at the top of the file, in the order of the reference.
var parts = fieldNames(reflect.TypeFor[document]())

//go:embed fermata.schema.json
var schema string

// Schema is the JSON Schema (draft 2020-12) of the agents file, for editors. Each call returns
// bytes of its own.
func Schema() json.RawMessage { return json.RawMessage(schema) }
