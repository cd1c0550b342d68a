// The configuration over HTTP: shown with secrets masked, checked and changed by owners. A change is
// refused if the file changed since it was read. The gateway notices the new file as it does an edit by
// hand, applies it and writes the audit.

import { AT_START, appliesAt } from '../../kernel/config/diff.ts';
import { settingVariables } from '../../kernel/config/environment.ts';
import { EMPTY, newProblems, saveConfig } from '../../kernel/config/files/config-file.ts';
import { configVersions, keepVersion } from '../../kernel/config/files/config-history.ts';
import { configJsonSchema } from '../../kernel/config/files/config-schema.ts';
import { problemLines } from '../../kernel/config/issues.ts';
import {
  isJsonObject,
  type JsonObject,
  type JsonValue,
  joinPath,
  readJson,
} from '../../kernel/config/json.ts';
import { changedPaths, valueAt, withoutValue, withValue } from '../../kernel/config/json-paths.ts';
import { migrateConfig } from '../../kernel/config/migration.ts';
import { maskSecrets, unmasked } from '../../kernel/config/secrets.ts';
import type { Kernel } from '../../kernel/feature.ts';
import {
  endpoint,
  Refusal,
  type RouteHandlers,
  versionOf,
  watched,
} from '../../kernel/http-routes.ts';
import { ConfigError, type ConfigProblem } from '../../kernel/message/errors.ts';
import { textIfThere } from '../../lib/files/files.ts';
import { defined } from '../../lib/json/json.ts';
import { t } from '../../lib/texts.ts';
import type { Clock } from '../../lib/time/clock.ts';
import {
  type CheckedChanges,
  type ConfigurationHistory,
  checkedChanges,
  configurationHistory,
  configurationSchema,
  type Difference,
  restoredVersion,
  type SettingChange,
  type SettingChanges,
  type SettingProblem,
  type ShownConfiguration,
  settingChanges,
  shownConfiguration,
} from './rules/views.ts';

type ConfigurationRoutesDeps = Pick<Kernel, 'live' | 'home' | 'env'> & {
  readonly clock: Pick<Clock, 'sleep'>;
};

export function configurationRoutes({ live, home, env, clock }: ConfigurationRoutesDeps) {
  const text = async () => (await textIfThere(home.config)) ?? EMPTY;

  async function shown(): Promise<ShownConfiguration> {
    const written = await text();
    const { raw, problems } = readRaw(written);
    return {
      version: versionOf(written),
      ...(raw === undefined ? {} : { written: maskedObject(raw) }),
      variables: settingVariables(env),
      problems: (problems.length > 0 ? problems : live.problems).map(shownProblem),
    };
  }

  /** The file as it is, and as edited and changed; `after` is absent where the text is no JSON. @throws Refusal */
  async function changed({ version, text: edited, changes }: SettingChanges) {
    const written = await text();
    requireVersion(written, version);
    const { raw: before, problems: there } = readRaw(written);
    if (before === undefined) throw invalid(there);
    if (edited === undefined)
      return { before, after: withChanges(before, changes, before), problems: [] };
    const { raw, problems } = readRaw(edited);
    if (raw === undefined) return { before, problems };
    return { before, after: withChanges(raw, changes, before), problems };
  }

  async function save(raw: JsonObject): Promise<ShownConfiguration> {
    await saveConfig(home, raw, env).catch((error: unknown) => {
      throw error instanceof ConfigError ? invalid(error.problems) : error;
    });
    return shown();
  }

  async function history(): Promise<ConfigurationHistory> {
    const current = await text();
    // The gateway keeps an edit of the file when it has loaded it, which may be after this request.
    const { raw: edited, problems } = readRaw(current);
    if (edited !== undefined && problems.length === 0) await keepVersion(home);
    const versions = (await configVersions(home)).map((one) => ({
      ...one,
      raw: readRaw(one.text).raw ?? {},
    }));
    const now = versions.findIndex((one) => one.text === current);
    return {
      versions: versions.map(({ id, at, raw }, index) => {
        const before = versions[index + 1]?.raw;
        const changes = before === undefined ? [] : differencesOf(before, raw);
        return { id, at, isCurrent: index === now, changes };
      }),
    };
  }

  async function restore(id: string, version: string): Promise<ShownConfiguration> {
    requireVersion(await text(), version);
    const found = (await configVersions(home)).find((one) => one.id === id);
    if (found === undefined)
      throw new Refusal(404, 'not_found', t`This version is not kept any more.`);
    const { raw, problems } = readRaw(found.text);
    if (raw === undefined) throw invalid(problems);
    return save(raw);
  }

  return {
    'GET /api/v1/configuration': endpoint(
      { summary: t`The configuration, secrets masked`, answer: shownConfiguration },
      shown,
    ),
    'GET /api/v1/configuration/events': watched(
      {
        summary: t`The configuration, secrets masked, now and after each change`,
        answer: shownConfiguration,
      },
      clock,
      shown,
    ),
    'GET /api/v1/configuration/schema': endpoint(
      { summary: t`The JSON Schema of the configuration`, answer: configurationSchema },
      () => ({ schema: schemaOf(), atStart: [...AT_START] }),
    ),
    'POST /api/v1/configuration/check': endpoint(
      {
        summary: t`What changes of the configuration would do, and what keeps them from being saved`,
        ...{ body: settingChanges, answer: checkedChanges },
      },
      async (_params, asked): Promise<CheckedChanges> => {
        const { before, after, problems } = await changed(asked);
        if (after === undefined) return { problems: problems.map(shownProblem), differences: [] };
        const lineOf = linesOf(asked.text);
        const found = [...problems, ...(await newProblems(home, after, env))].map((one) => ({
          ...one,
          ...defined({ line: one.line ?? lineOf(one.path) }),
        }));
        return { problems: found.map(shownProblem), differences: differencesOf(before, after) };
      },
    ),
    'POST /api/v1/configuration': endpoint(
      {
        summary: t`Change the configuration; nothing is saved if the file changed meanwhile`,
        ...{ body: settingChanges, answer: shownConfiguration },
      },
      async (_params, asked) => {
        const { after, problems } = await changed(asked);
        if (after === undefined || problems.length > 0) throw invalid(problems);
        return save(after);
      },
    ),
    'GET /api/v1/configuration/history': endpoint(
      { summary: t`Earlier versions of the configuration`, answer: configurationHistory },
      history,
    ),
    'POST /api/v1/configuration/restore': endpoint(
      {
        summary: t`Replace the configuration by an earlier version`,
        ...{ body: restoredVersion, answer: shownConfiguration },
      },
      (_params, { id, version }) => restore(id, version),
    ),
  } satisfies RouteHandlers;
}

function requireVersion(written: string, version: string): void {
  if (versionOf(written) === version) return;
  const message = t`config.json was changed meanwhile; nothing is saved.`;
  throw new Refusal(409, 'changed_meanwhile', message);
}

function readRaw(written: string): {
  readonly raw?: JsonObject;
  readonly problems: readonly ConfigProblem[];
} {
  try {
    const { value, problems } = readJson(written);
    return { raw: migrateConfig(value).raw, problems };
  } catch (error) {
    if (error instanceof ConfigError) return { problems: error.problems };
    throw error;
  }
}

/** Where a path stands in the text, or what is around it. */
function linesOf(text: string | undefined): (path: string) => number | undefined {
  if (text === undefined) return () => undefined;
  const { places } = readJson(text);
  return (path) => {
    for (let at = path; at !== ''; at = at.slice(0, Math.max(0, at.lastIndexOf('.')))) {
      const place = places.get(at);
      if (place !== undefined) return place.line;
    }
    return undefined;
  };
}

/** Masks become the secrets of `before`. */
function withChanges(
  raw: JsonObject,
  changes: readonly SettingChange[],
  before: JsonObject,
): JsonObject {
  const next = changes.reduce<JsonObject>(
    (one, { path, value }) =>
      value === undefined ? withoutValue(one, path) : withValue(one, path, value),
    raw,
  );
  const whole = unmasked(next, before);
  return isJsonObject(whole) ? whole : next;
}

function differencesOf(before: JsonObject, after: JsonObject): Difference[] {
  const [was, is] = [maskSecrets(before), maskSecrets(after)];
  const paths = changedPaths(before, after).flatMap((path) =>
    keysBelow(valueAt(after, path) ?? valueAt(before, path), path),
  );
  return paths.map((path) => ({
    path,
    applies: appliesAt(path),
    ...defined({ before: valueAt(was, path), after: valueAt(is, path) }),
  }));
}

/** A section that came or went is as many settings, which need not apply at the same time. */
const keysBelow = (value: JsonValue | undefined, path: string): readonly string[] =>
  isJsonObject(value) && Object.keys(value).length > 0
    ? Object.entries(value).flatMap(([key, inner]) => keysBelow(inner, joinPath(path, key)))
    : [path];

function maskedObject(raw: JsonObject): JsonObject {
  const masked = maskSecrets(raw);
  return isJsonObject(masked) ? masked : {};
}

const schemaOf = () => JSON.parse(JSON.stringify(configJsonSchema()));

const shownProblem = ({ path, problem, remedy, line }: ConfigProblem): SettingProblem => ({
  ...{ path, problem, remedy },
  ...(line === undefined ? {} : { line }),
});

const invalid = (problems: readonly ConfigProblem[]) =>
  new Refusal(422, 'invalid', problemLines(problems).join('\n'));
