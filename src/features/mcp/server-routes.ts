// Tool servers over HTTP, with the rights of an owner: their state and tools, the switch and the trust of
// each, removing one, logging out.

import { z } from 'zod';
import { noteCommand } from '../../channels/local-channel.ts';
import type { Kernel } from '../../kernel/feature.ts';
import { endpoint, type RouteHandlers, watched } from '../../kernel/http-routes.ts';
import type { NanobotError } from '../../kernel/message/errors.ts';
import { headOf } from '../../lib/text/cut.ts';
import { t } from '../../lib/texts.ts';
import { explained } from '../setup/asker.ts';
import type { ToolServers } from './index.ts';
import { type LoginRows, mayLogIn } from './login.ts';
import { type ShownServers, serverChange, shownServers } from './rules/views.ts';
import type { ToolServerConfig } from './settings.ts';
import { changeToolServer, removeToolServer } from './setup.ts';
import { stateText } from './tooling.ts';

const MAX_DESCRIPTION_CHARS = 300;

type Shown = ShownServers['servers'][number];

const oneServer = z.object({ name: z.string().min(1).max(100) });

export function serverRoutes(kernel: Kernel, servers: ToolServers, logins: LoginRows) {
  const { live, clock, measuring } = kernel;
  const note = (...words: readonly string[]) => noteCommand(measuring.audit, 'mcp', ...words);

  function shown(name: string, config: ToolServerConfig): Shown {
    const { enabled, trust, url, command } = config;
    const report = servers.report().find((one) => one.name === name);
    const tools = servers
      .tools()
      .filter((tool) => report?.tools.includes(tool.name) === true)
      .map((tool) => ({
        name: tool.name,
        description: headOf(tool.description ?? '', MAX_DESCRIPTION_CHARS),
      }));
    return {
      ...{ name, enabled, trust, tools, isHosted: url !== '', mayLogIn: mayLogIn(config) },
      origin: live.redact(url === '' ? command : originOf(url)),
      state: enabled ? (report?.state.kind ?? 'starting') : 'off',
      text: enabled ? live.redact(stateText(report, clock.now())) : t`switched off`,
    };
  }

  return {
    'GET /api/v1/tool-servers/events': watched(
      { summary: t`The tool servers, now and after each change`, answer: shownServers },
      clock,
      async () => ({
        servers: Object.entries(live.config.mcpServers).map(([name, config]) =>
          shown(name, config),
        ),
      }),
    ),
    'POST /api/v1/tool-servers/:name': endpoint(
      {
        summary: t`Switch a tool server on or off, or change how often its tools are asked about`,
        ...{ params: oneServer, body: serverChange, answer: z.object({}) },
      },
      ({ name }, change) =>
        explained(async () => {
          await changeToolServer(kernel, name, change);
          note('change', name, JSON.stringify(change));
          return {};
        }, statusOf),
    ),
    'POST /api/v1/tool-servers/:name/remove': endpoint(
      {
        summary: t`Remove a tool server, with its tokens`,
        ...{ params: oneServer, body: z.strictObject({}), answer: z.object({}) },
      },
      ({ name }) =>
        explained(async () => {
          await removeToolServer(kernel, name, logins);
          note('remove', name);
          return {};
        }, statusOf),
    ),
    'POST /api/v1/tool-servers/:name/logout': endpoint(
      {
        summary: t`Delete the tokens of a hosted tool server`,
        ...{ params: oneServer, body: z.strictObject({}), answer: z.object({}) },
      },
      async ({ name }) => {
        await logins.delete(name);
        note('logout', name);
        return {};
      },
    ),
  } satisfies RouteHandlers;
}

/** A query may hold a key. */
function originOf(url: string): string {
  const parsed = URL.parse(url);
  return parsed === null ? '' : `${parsed.origin}${parsed.pathname}`;
}

const statusOf = ({ code }: NanobotError) => (code === 'tool_server_unknown' ? 404 : 422);
