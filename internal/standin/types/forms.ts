// What a request of each form may be, by the provider's own package: the forms that
// internal/standin keeps, by their names. What goes beyond it stands here by name, with
// the reason.
import type { MessageCreateParamsStreaming } from "@anthropic-ai/sdk/resources/messages";
import type { ConverseStreamRequest } from "@aws-sdk/client-bedrock-runtime";
import type { DocumentType } from "@smithy/types";
import type { Content, GenerationConfig, ServiceTier, Tool, ToolConfig } from "@google/genai";
import type {
  ChatCompletionAssistantMessageParam,
  ChatCompletionCreateParamsStreaming,
  ChatCompletionMessageParam,
} from "openai/resources/chat/completions";
import type { ResponseCreateParamsStreaming } from "openai/resources/responses/responses";

// DeepSeek and Kimi want the thinking of their models back.
type Thinking = ChatCompletionAssistantMessageParam & { reasoning_content: string };

// Groq's tier is a word of its own.
export type chat = Omit<ChatCompletionCreateParamsStreaming, "messages" | "service_tier"> & {
  messages: (ChatCompletionMessageParam | Thinking)[];
  service_tier?: ChatCompletionCreateParamsStreaming["service_tier"] | "on_demand";
};

export type responses = ResponseCreateParamsStreaming;

// Models up to Claude Opus 4.6 take a temperature, which the package has left out since.
export type messages = MessageCreateParamsStreaming & { temperature?: number };

// On Vertex the model's name stands in the path, and the version in the body.
export type predict = Omit<messages, "model"> & { anthropic_version: "vertex-2023-10-16" };

// A package's enumerations are classes of their own; on the wire they are their strings.
type Wire<T> = T extends string ? `${T}` : T extends object ? { [K in keyof T]: Wire<T[K]> } : T;

// The package has no type for the body that it sends: its parameters are the same parts,
// in another order.
export type generate = Wire<{
  contents: Content[];
  systemInstruction?: Content;
  tools?: Tool[];
  toolConfig?: ToolConfig;
  generationConfig?: GenerationConfig;
  serviceTier?: ServiceTier;
}>;

// Binary values are in base64 on the wire. Values of any JSON stay what they are.
type Wired<T> = T extends Uint8Array ? string : T extends DocumentType ? T : T extends object ? { [K in keyof T]: Wired<T[K]> } : T;

// The model's id stands in the path.
export type converse = Wired<Omit<ConverseStreamRequest, "modelId">>;
