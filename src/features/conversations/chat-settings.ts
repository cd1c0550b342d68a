// The settings of a chat of the page over HTTP: those of /model, /think, /mode and /approvals, set by the
// functions behind these commands; and what the message field completes.

import { z } from 'zod';
import { LOCAL_CHAT_NAME, noteCommand } from '../../channels/local-channel.ts';
import type { PersonRecord } from '../../kernel/access/person.ts';
import type { ApprovalPolicy } from '../../kernel/access/rights.ts';
import type { CommandInfo } from '../../kernel/commands/command-access.ts';
import { AGENT_MODES } from '../../kernel/config/settings-fields.ts';
import type { Kernel } from '../../kernel/feature.ts';
import { endpoint, Refusal, type RouteHandlers } from '../../kernel/http-routes.ts';
import { ProviderError } from '../../kernel/message/errors.ts';
import { channelName, chatId, DEFAULT_ACCOUNT, type SessionKey } from '../../kernel/message/ids.ts';
import type { ChatRef } from '../../kernel/message/message.ts';
import { defined } from '../../lib/json/json.ts';
import { t } from '../../lib/texts.ts';
import type { ModeService } from '../modes/index.ts';
import { chooseModel, type ModelChoiceDeps, thinkingWithin } from './model-commands.ts';
import {
  type ChangedChatSettings,
  type ChatSettings,
  changedChatSettings,
  chatSettings,
  commandFacts,
  modelNames,
} from './rules/chat-views.ts';

const oneChat = z.object({
  chat: z.string().regex(LOCAL_CHAT_NAME, 'has 1 to 64 letters, digits, ".", "_" or "-"'),
});

type ChatSettingsDeps = Omit<ModelChoiceDeps, 'settings'> & {
  readonly modes: ModeService;
  readonly approvals: {
    /** The owner as a person of this chat. */
    of(chat: ChatRef): Promise<Pick<PersonRecord, 'approvals'> | undefined>;
    /** False where the owner is no known person yet. */
    set(chat: ChatRef, policy: ApprovalPolicy | 'auto'): Promise<boolean>;
  };
  /** Whether voice messages are transcribed. */
  hears(): boolean;
  /** That need no further setup. */
  modelNames(): Promise<readonly string[]>;
  readonly commands: readonly CommandInfo[];
};

export function chatSettingsRoutes(kernel: Kernel, deps: ChatSettingsDeps) {
  const { live, people, settings, measuring } = kernel;
  const { models, modes } = deps;

  async function view(chat: ChatRef): Promise<ChatSettings> {
    const chosen = await settings.get(await people.routes.sessionOf(chat));
    const { approvals } = (await deps.approvals.of(chat)) ?? {};
    const shownModes = AGENT_MODES.map(async (name) => ({
      name,
      problems: [...(await modes.problems(name))],
    }));
    return {
      ...defined({ model: chosen.model, thinking: chosen.thinkingBudget, mode: chosen.mode }),
      defaultModel: models().defaultModel,
      defaultThinking: live.defaults.thinkingBudget,
      defaultMode: modes.configured(),
      modes: await Promise.all(shownModes),
      hears: deps.hears(),
      ...defined({ approvals }),
    };
  }

  async function change(chat: ChatRef, changed: ChangedChatSettings): Promise<void> {
    const session = await people.routes.sessionOf(chat);
    const { model, thinking, mode, approvals } = changed;
    if (model !== undefined) await changeModel(session, model, { ...deps, settings });
    if (thinking !== undefined) {
      const thinkingBudget = thinking === 'default' ? undefined : thinkingWithin(thinking);
      await settings.change(session, { thinkingBudget });
    }
    if (mode !== undefined) {
      await settings.change(session, { mode: mode === 'default' ? undefined : mode });
    }
    if (approvals !== undefined) {
      noteCommand(measuring.audit, 'approvals', approvals);
      if (!(await deps.approvals.set(chat, approvals)))
        throw new Refusal(409, 'unknown_person', t`Write a first message, then choose this.`);
    }
  }

  return {
    'GET /api/v1/chats/:chat/settings': endpoint(
      {
        ...{ summary: t`How the answers of a chat of the page are made`, params: oneChat },
        answer: chatSettings,
      },
      ({ chat }) => view(webChat(chat)),
    ),
    'POST /api/v1/chats/:chat/settings': endpoint(
      {
        summary: t`Change how its answers are made, from the next message on`,
        ...{ params: oneChat, body: changedChatSettings, answer: chatSettings },
      },
      async ({ chat }, changed) => {
        await change(webChat(chat), changed);
        return view(webChat(chat));
      },
    ),
    'GET /api/v1/models': endpoint(
      { summary: t`Models that can be chosen`, answer: modelNames },
      async () => ({ models: [...(await deps.modelNames())] }),
    ),
    'GET /api/v1/commands': endpoint(
      { summary: t`The chat commands of an owner`, answer: commandFacts },
      () => ({
        commands: deps.commands.map(({ name, summary, usage }) => ({
          ...{ name, summary },
          ...defined({ usage }),
        })),
      }),
    ),
  } satisfies RouteHandlers;
}

const webChat = (chat: string): ChatRef => ({
  channel: channelName('web'),
  account: DEFAULT_ACCOUNT,
  chat: chatId(chat),
});

async function changeModel(session: SessionKey, model: string, deps: ModelChoiceDeps) {
  const set = await chooseModel(session, model, deps).catch((error: unknown) => {
    if (!(error instanceof ProviderError)) throw error;
    throw new Refusal(400, 'unknown_model', error.userText ?? error.message);
  });
  if (set.kind === 'refused') throw new Refusal(409, 'local_only', set.text);
}
