package bedrock_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/standin"
	"github.com/fermata-agents/fermata/provider/bedrock"
)

func TestTable(t *testing.T) { standin.SaneTable(t, bedrock.Table()) }

// A model is known by all its names, and costs a tenth more nearer than everywhere.
func TestInfo(t *testing.T) {
	m := bedrock.New(nil)
	for id, input := range map[string]agent.USD{
		"global.anthropic.claude-opus-5-5": 4 * agent.Dollar,
		"us.anthropic.claude-opus-5-5":     4*agent.Dollar + 4*agent.Dollar/10,
		"arn:aws:bedrock:us-east-1:123456789012:inference-profile/global.anthropic.claude-opus-5-5": 4 * agent.Dollar,
		"arn:aws:bedrock:us-east-1::foundation-model/anthropic.claude-haiku-4-5-20251001-v1:0":      agent.Dollar + agent.Dollar/10,
		"global.anthropic.claude-haiku-4-5-20251001-v1:0":                                           agent.Dollar,
		"anthropic.claude-opus-4-6-v1":                                                              5*agent.Dollar + agent.Dollar/2,
		"amazon.nova-pro-v1:0":                                                                      agent.Dollar * 8 / 10,
		"amazon.nova-pro-v1:0:300k":                                                                 agent.Dollar * 8 / 10,
		"eu.amazon.nova-pro-v1:0":                                                                   agent.Dollar * 8 / 10,
		"anthropic.claude-of-tomorrow":                                                              0,
		"arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/a1b2":                 0,
	} {
		require.Equal(t, input, m.Info(id).Price.Input, id)
	}
}

// What a model takes is known where the model is.
func TestFilesOfModels(t *testing.T) {
	m := bedrock.New(nil)
	for id, takes := range map[string]bool{"global.anthropic.claude-opus-5-5": true, "eu.amazon.nova-pro-v1:0": true, "amazon.nova-micro-v1:0": false, "meta.llama4-maverick-17b-instruct-v1:0": false} {
		require.Equal(t, takes, m.Info(id).Files["image/png"] > 0 && m.Info(id).Files["application/pdf"] > 0, id)
	}
}
