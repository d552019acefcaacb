package signals

// NexusType is the type of the workflow that calls a Nexus operation for a run.
const NexusType = "fermata.nexus"
