package openai

import (
	"slices"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/filebody"
)

// inputContent returns a user's message for Responses; nil for one without files.
func inputContent(msg agent.Message, files *filebody.Files) (content responses.ResponseInputMessageContentListParam) {
	if !slices.ContainsFunc(msg.Parts, func(p agent.Part) bool { return p.File != nil }) {
		return nil
	}
	for _, p := range msg.Parts {
		switch {
		case p.Type == agent.PartText && !blank(p.Text):
			content = append(content, responses.ResponseInputContentParamOfInputText(p.Text))
		case p.File != nil && p.File.IsImage():
			image := responses.ResponseInputContentParamOfInputImage(responses.ResponseInputImageDetailAuto)
			image.OfInputImage.ImageURL = param.NewOpt(dataURL(p.File, files))
			content = append(content, image)
		case p.File != nil:
			content = append(content, responses.ResponseInputContentUnionParam{OfInputFile: &responses.ResponseInputFileParam{
				FileData: param.NewOpt(dataURL(p.File, files)), Filename: param.NewOpt(fileName(p.File)),
			}})
		}
	}
	return content
}

// resultItem returns a tool's result for Responses: a text, unless it has files.
func resultItem(r *agent.ToolResult, files *filebody.Files) responses.ResponseInputItemUnionParam {
	if len(r.Files) == 0 {
		return responses.ResponseInputItemParamOfFunctionCallOutput(r.Text)
	}
	var list responses.ResponseFunctionCallOutputItemListParam
	if !blank(r.Text) {
		list = append(list, responses.ResponseFunctionCallOutputItemUnionParam{OfInputText: &responses.ResponseInputTextContentParam{Text: r.Text}})
	}
	for _, p := range r.Files {
		url := param.NewOpt(dataURL(p.File, files))
		if p.File.IsImage() {
			list = append(list, responses.ResponseFunctionCallOutputItemUnionParam{OfInputImage: &responses.ResponseInputImageContentParam{
				ImageURL: url, Detail: responses.ResponseInputImageContentDetailAuto,
			}})
			continue
		}
		list = append(list, responses.ResponseFunctionCallOutputItemUnionParam{OfInputFile: &responses.ResponseInputFileContentParam{
			FileData: url, Filename: param.NewOpt(fileName(p.File)),
		}})
	}
	return responses.ResponseInputItemParamOfFunctionCallOutput(list)
}

// chatFiles returns the files of a user's message for Chat Completions.
func chatFiles(msg agent.Message, files *filebody.Files) (parts []sdk.ChatCompletionContentPartUnionParam) {
	for _, p := range msg.Parts {
		f := p.File
		if f == nil {
			continue
		}
		if f.IsImage() {
			parts = append(parts, sdk.ImageContentPart(sdk.ChatCompletionContentPartImageImageURLParam{URL: dataURL(f, files)}))
			continue
		}
		parts = append(parts, sdk.FileContentPart(sdk.ChatCompletionContentPartFileFileParam{
			FileData: param.NewOpt(dataURL(f, files)), Filename: param.NewOpt(fileName(f)),
		}))
	}
	return parts
}

// addContent continues a user's message. It stays a text while it has no files: not every
// server takes parts.
func addContent(c *sdk.ChatCompletionUserMessageParamContentUnion, text string, files []sdk.ChatCompletionContentPartUnionParam) {
	if len(files) == 0 && c.OfArrayOfContentParts == nil {
		if c.OfString.Value != "" {
			text = c.OfString.Value + "\n\n" + text
		}
		c.OfString = param.NewOpt(text)
		return
	}
	parts := c.OfArrayOfContentParts
	if c.OfString.Value != "" {
		parts = append(parts, sdk.TextContentPart(c.OfString.Value))
	}
	if !blank(text) {
		parts = append(parts, sdk.TextContentPart(text))
	}
	*c = sdk.ChatCompletionUserMessageParamContentUnion{OfArrayOfContentParts: append(parts, files...)}
}

func dataURL(f *agent.File, files *filebody.Files) string {
	return "data:" + f.MediaType + ";base64," + files.Base64(f.Digest)
}

// fileName returns a file's name, which the API requires.
func fileName(f *agent.File) string {
	if f.Name != "" {
		return f.Name
	}
	return "file.pdf"
}
