// Package agentsfile reads agents, models and tools from a YAML file, such as
//
//	agents:
//	  reviewer:
//	    model: anthropic/claude-sonnet-5
//	    instructions: You review code.
//	    tools: [fs_read, fs_grep, "mcp:tickets"]
//	    limits: {turns: 40, cost_usd: 2.0, wall_clock: 30m}
//	  lead:
//	    model: anthropic/claude-sonnet-5
//	    tools: [fs_read, shell_run, ask_user, await_resumption]
//	    agents: [{agent: reviewer, description: Reviews what you wrote.}]
//	    rules:
//	      - {do: ask, tools: [shell_run], reason: It changes the machine., deadline: 24h}
//	    on_limit: ask
//	models:
//	  local: {provider: openai, base_url: "http://127.0.0.1:11434/v1", model: qwen3}
//	  claude: {provider: anthropic, model: claude-opus-5, cache_ttl: 1h, headers: {X-Team: research}}
//	rates:
//	  anthropic: {per_second: 5, concurrent: 20}
//	daily: {cost_usd: 50}
//	mcp:
//	  tickets: {command: [tickets-mcp, --stdio], env: {TICKETS_TOKEN: $TICKETS_TOKEN}, elicit: rounds}
//	  wiki: {url: "https://wiki.example.com/mcp", headers: {Authorization: "Bearer ${WIKI_TOKEN}"}, resources: true}
//	workspace: ./project
//
// A file is checked completely before anything is opened: [Load] reports every error with
// its line. [File.Open] then opens the workspace and the MCP servers that some agent
// uses, and no others.
//
// [Schema] is the file's JSON Schema. A test generates it, docs/agents-file.md and
// docs/built-in-tools.md from the types and the tools; -update writes them.
package agentsfile
