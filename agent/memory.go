package agent

// AnonymousPrincipal is whose memory a session uses that was started without a name: see [MemoryTool].
const AnonymousPrincipal = "anonymous"
