// All chat commands as plain data, for uses without a gateway: menus and completion of channels,
// and the checks of the documentation.

import type { CommandInfo, CommandTable } from '../kernel/commands/command-access.ts';
import { BASIC_COMMANDS } from '../kernel/commands/commands.ts';
import { STATUS_COMMANDS } from '../kernel/status.ts';
import { CLUSTER_COMMANDS } from './cluster/cluster-service.ts';
import { COMPACT_COMMANDS, CONVERSATION_COMMANDS } from './conversations/conversation-commands.ts';
import { MODEL_COMMANDS } from './conversations/model-commands.ts';
import { STOP_COMMANDS } from './conversations/stop-command.ts';
import { WHY_COMMANDS } from './conversations/why-command.ts';
import { APPROVAL_COMMANDS } from './letters/approval-commands.ts';
import { LOCAL_COMMANDS } from './local-models/local-models.ts';
import { MCP_COMMANDS } from './mcp/index.ts';
import { MEMORY_COMMANDS } from './memory/memory-service.ts';
import { MODE_COMMANDS } from './modes/index.ts';
import { KNOWN_PEOPLE_COMMANDS, PEOPLE_COMMANDS } from './people/people-commands.ts';
import { CONTINUE_COMMANDS, LINK_COMMANDS, PERSON_COMMANDS } from './people/person-commands.ts';
import { CRON_COMMANDS } from './schedule/cron-tool.ts';
import { SKILLS_COMMANDS } from './skills/skills.ts';
import { SPENDING_COMMANDS } from './spending/spending-service.ts';
import { AGENTS_COMMANDS } from './subagents/agents-commands.ts';
import { WORKFLOW_COMMANDS } from './workflows/index.ts';

const TABLE: CommandTable = {
  ...BASIC_COMMANDS,
  ...CONVERSATION_COMMANDS,
  ...STOP_COMMANDS,
  ...STATUS_COMMANDS,
  ...MODEL_COMMANDS,
  ...LOCAL_COMMANDS,
  ...CLUSTER_COMMANDS,
  ...MODE_COMMANDS,
  ...COMPACT_COMMANDS,
  ...PEOPLE_COMMANDS,
  ...SPENDING_COMMANDS,
  ...WHY_COMMANDS,
  ...SKILLS_COMMANDS,
  ...PERSON_COMMANDS,
  ...KNOWN_PEOPLE_COMMANDS,
  ...LINK_COMMANDS,
  ...APPROVAL_COMMANDS,
  ...CONTINUE_COMMANDS,
  ...CRON_COMMANDS,
  ...MEMORY_COMMANDS,
  ...MCP_COMMANDS,
  ...AGENTS_COMMANDS,
  ...WORKFLOW_COMMANDS,
};

export const COMMAND_LIST: readonly CommandInfo[] = Object.entries(TABLE).map(([name, facts]) => ({
  ...facts,
  name,
}));
