// Whether a file may name a tool: one that is built in, or one of a tool server, which is known only
// while that runs.

import { TOOL_NAMES } from './config/tools.ts';

const BUILT_IN: ReadonlySet<string> = new Set(TOOL_NAMES);
const OF_SERVER = /^mcp_[A-Za-z0-9_-]+$/;

export const mayBeTool = (name: string) => BUILT_IN.has(name) || OF_SERVER.test(name);
