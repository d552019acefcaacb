module github.com/fermata-agents/fermata/provider/openai

go 1.26.0

require (
	github.com/fermata-agents/fermata v0.0.0
	github.com/openai/openai-go/v3 v3.95.0
)

require (
	github.com/coder/websocket v1.8.15 // indirect
	github.com/google/jsonschema-go v0.4.3 // indirect
	github.com/tidwall/gjson v1.20.0 // indirect
	github.com/tidwall/match v1.1.1 // indirect
	github.com/tidwall/pretty v1.2.1 // indirect
	github.com/tidwall/sjson v1.2.5 // indirect
)

replace github.com/fermata-agents/fermata => ../../
