// Brings older configuration files up to date, one version at a time. What a step changes it says
// in a note; what it does not know it leaves for validation to report.

import { ConfigError } from '../message/errors.ts';
import { CONFIG_VERSION } from './config.ts';
import { isJsonObject, type JsonObject, type JsonValue } from './json.ts';
import { upgradeOriginalConfig } from './original.ts';

export type Migration = {
  readonly from: number;
  apply(raw: JsonObject): { readonly raw: JsonObject; readonly notes: readonly string[] };
};

export type Migrated = {
  readonly raw: JsonObject;
  /** Undefined where nothing had to be done. */
  readonly from: number | undefined;
  readonly notes: readonly string[];
};

/** A file without `version` is the original program's. */
export const MIGRATIONS: readonly Migration[] = [{ from: 0, apply: upgradeOriginalConfig }];

/** @throws ConfigError where the file is no object or was written by a newer nanobot. */
export function migrateConfig(value: JsonValue): Migrated {
  if (!isJsonObject(value)) throw problem('', 'the file must hold one object', 'Begin with {.');
  const from = versionOf(value);
  let raw = value;
  const notes: string[] = [];
  for (let version = from; version < CONFIG_VERSION; version += 1) {
    const step = MIGRATIONS.find((migration) => migration.from === version);
    if (step === undefined) throw problem('version', `no way up from ${version}`, 'Start anew.');
    const result = step.apply(raw);
    raw = { ...result.raw, version: version + 1 };
    notes.push(...result.notes);
  }
  return { raw, from: from === CONFIG_VERSION ? undefined : from, notes };
}

function versionOf(raw: JsonObject): number {
  const version = raw['version'] ?? 0;
  if (typeof version !== 'number' || !Number.isInteger(version) || version < 0) {
    throw problem('version', `${JSON.stringify(version)} is no version`, `Use ${CONFIG_VERSION}.`);
  }
  if (version > CONFIG_VERSION) {
    const remedy = 'Update nanobot, or go back to an older copy of the file.';
    throw problem('version', `version ${version} is newer than this nanobot reads`, remedy);
  }
  return version;
}

function problem(path: string, text: string, remedy: string): ConfigError {
  return new ConfigError(text, [{ path, problem: text, remedy }]);
}
