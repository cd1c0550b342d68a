// /local: this conversation goes on with a model on one's own machine, and back. A turn under way ends
// on the model it began with; what was counted goes on counting.

import { COSTS } from '../../kernel/access/command-access.ts';
import {
  type Command,
  type CommandOrigin,
  type CommandTable,
  commandsOf,
} from '../../kernel/commands/command.ts';
import type { SessionSettings, SessionSettingsStore } from '../../kernel/turns/session-settings.ts';
import type { ModelRegistry } from '../../providers/provider.ts';
import {
  cloudModelText,
  type FoundServer,
  firstOf,
  foundText,
  type LocalModels,
  NOTHING_FOUND,
} from './local-models.ts';

const USAGE = '/local [list | model | only | off | default [model | off]]';

export const LOCAL_COMMANDS = {
  local: {
    summary: 'change to a model on this machine, and back',
    usage: USAGE,
    access: COSTS,
    timing: 'in_order',
  },
} satisfies CommandTable;

type LocalCommandDeps = {
  readonly local: LocalModels;
  readonly settings: SessionSettingsStore;
  models(): ModelRegistry;
};

export function localCommands(deps: LocalCommandDeps): readonly Command[] {
  return commandsOf(LOCAL_COMMANDS, {
    local: (origin, argument) => changeLocal(origin, argument, deps),
  });
}

async function changeLocal(origin: CommandOrigin, argument: string, deps: LocalCommandDeps) {
  const [word = '', ...rest] = argument.split(/\s+/).filter((part) => part !== '');
  if (word === 'default') {
    const [named = '', ...more] = rest;
    return more.length > 0 ? notUnderstood(more) : changeForAll(origin, named, deps);
  }
  if (rest.length > 0) return notUnderstood(rest);
  if (word === 'only') return stayHere(origin, deps);
  if (word === 'off' && (await deps.local.only.holding(origin.session)) !== undefined) {
    return letGo(origin, deps);
  }
  if (word === 'list')
    return `${await currentText(origin, deps)}\n\n${foundText(await deps.local.look())}`;
  const chosen = await deps.settings.get(origin.session);
  const isLocal = deps.local.isLocal(chosen.model ?? deps.models().defaultModel);
  if (word === 'off' || (word === '' && isLocal)) return changeBack(origin, chosen, deps);
  return withModel(word, deps, (model) => changeTo(origin, { chosen, model, isLocal }, deps));
}

const notUnderstood = (words: readonly string[]) =>
  `I do not understand "${words.join(' ')}". Usage: ${USAGE}`;

async function currentText({ session }: CommandOrigin, deps: LocalCommandDeps): Promise<string> {
  const { model = deps.models().defaultModel } = await deps.settings.get(session);
  return `The model here is ${model}.`;
}

const SAID =
  'Nothing of this conversation goes to a model or voice service beyond your own machines';

/** Also of what is started from it. */
async function stayHere({ session }: CommandOrigin, deps: LocalCommandDeps): Promise<string> {
  await deps.local.only.hold(session, true);
  const chosen = await deps.settings.get(session);
  const model = chosen.model ?? deps.models().defaultModel;
  const refused = await deps.local.only.refusal(session, model);
  if (refused === undefined) return `${SAID} from now on. The model is ${model}.`;
  return `${SAID} from now on. The model here, ${model}, is not asked any more: choose one with /local, or one on a peer with /model. /local off takes it back.`;
}

async function letGo(origin: CommandOrigin, deps: LocalCommandDeps): Promise<string> {
  const { session } = origin;
  await deps.local.only.hold(session, false);
  const holding = await deps.local.only.holding(session);
  if (holding === 'all') return `${SAID}, for the configuration says so (\`localModels.only\`).`;
  if (holding === 'conversation')
    return `${SAID}: it was started from one that stays on them. Say /local off there.`;
  const chosen = await deps.settings.get(session);
  const model = chosen.model ?? deps.models().defaultModel;
  const again = deps.local.isLocal(model) ? await changeBack(origin, chosen, deps) : '';
  return `Any model may be asked here again. ${again}`.trim();
}

/** Of the models that are there now: the named one, else the preferred one, else any. */
async function withModel(
  named: string,
  { local }: LocalCommandDeps,
  use: (model: string) => Promise<string>,
): Promise<string> {
  const found = await local.look();
  const wanted = named === '' ? local.preferred() : named;
  const model = modelAmong(found, wanted);
  if (model !== undefined) return isHandedOn(found, model) ? cloudModelText(model) : use(model);
  if (found.length === 0) return NOTHING_FOUND;
  const lacks = wanted === '' ? 'a model of its own' : `the model ${wanted}`;
  return `No local server here has ${lacks}. There are:\n\n${foundText(found)}`;
}

/** By its whole name, or as the server calls it; without a name the first one. */
function modelAmong(found: readonly FoundServer[], named: string) {
  if (named === '') return firstOf(found);
  const names = found.flatMap(({ models }) => models.map(({ name }) => name));
  return names.find((name) => name === named) ?? names.find((name) => name.endsWith(`/${named}`));
}

const isHandedOn = (found: readonly FoundServer[], model: string) =>
  found.some(({ models }) => models.some((one) => one.name === model && one.isHandedOn === true));

type Change = {
  readonly chosen: SessionSettings;
  readonly model: string;
  /** The model until now. */
  readonly isLocal: boolean;
};

async function changeTo({ session }: CommandOrigin, change: Change, deps: LocalCommandDeps) {
  const { chosen, model, isLocal } = change;
  const handle = deps.models().resolve(model);
  const { model: before, ...rest } = chosen;
  const kept = isLocal || before === undefined ? {} : { beforeLocal: before };
  await deps.settings.set(session, { ...rest, ...kept, model });
  deps.local.warmUp(model);
  return `From the next message on the model is ${handle.name}, on your own machine; it is being made ready. /local off goes back.`;
}

async function changeBack(
  { session }: CommandOrigin,
  chosen: SessionSettings,
  deps: LocalCommandDeps,
): Promise<string> {
  const { model = '', beforeLocal, ...rest } = chosen;
  const fallback = deps.models().defaultModel;
  if (!deps.local.isLocal(model === '' ? fallback : model))
    return 'The model here is not a local one.';
  if (model === '') return `The model of all is ${fallback}, a local one. Choose another: /model.`;
  await deps.settings.set(session, {
    ...rest,
    ...(beforeLocal === undefined ? {} : { model: beforeLocal }),
  });
  return `From the next message on the model is ${beforeLocal ?? fallback} again.`;
}

const FOR_ALL_IS_THE_OWNERS = 'Only my owner can change the model of all.';

async function changeForAll({ role }: CommandOrigin, named: string, deps: LocalCommandDeps) {
  if (role !== 'owner') return FOR_ALL_IS_THE_OWNERS;
  if (named === 'off') {
    await deps.local.useForAll(undefined);
    return `The model of all who chose none is ${deps.models().defaultModel}.`;
  }
  return withModel(named, deps, async (model) => {
    await deps.local.useForAll(model);
    deps.local.warmUp(model);
    return `From the next message on the model of all who chose none is ${model}. /local default off goes back.`;
  });
}
