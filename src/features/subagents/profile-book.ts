// The profiles of helpers in the workspace. Links are not followed; one that cannot be read says why.

import type { GuardedFiles } from '../../lib/files/guarded-files.ts';
import { GuardedFileError } from '../../lib/files/guarded-path.ts';
import { parseYaml, YamlError } from '../../lib/yaml.ts';
import {
  isProfileName,
  PROFILE_ENDING,
  PROFILES_FOLDER,
  type ReadProfile,
  readProfile,
} from './rules/profile.ts';

export type ProfileBook = {
  /** By name. */
  list(): Promise<readonly ReadProfile[]>;
  /** Undefined where there is none of this name. */
  get(name: string): Promise<ReadProfile | undefined>;
};

const MAX_PROFILES = 100;
const MAX_BYTES = 65_536;

export function createProfileBook(files: GuardedFiles, workspace: () => string): ProfileBook {
  async function names(): Promise<readonly string[]> {
    try {
      const { entries } = await files.list(workspace(), PROFILES_FOLDER, {
        maxEntries: MAX_PROFILES,
      });
      const found = entries.filter(
        ({ name, kind }) => kind === 'file' && name.endsWith(PROFILE_ENDING),
      );
      return found.map(({ name }) => name.slice(0, -PROFILE_ENDING.length)).sort();
    } catch (error) {
      if (error instanceof GuardedFileError) return [];
      throw error;
    }
  }

  async function read(name: string): Promise<ReadProfile> {
    try {
      const path = `${PROFILES_FOLDER}/${name}${PROFILE_ENDING}`;
      const bytes = await files.read(workspace(), path, { maxBytes: MAX_BYTES });
      return readProfile(await parseYaml(bytes.toString('utf8')), name);
    } catch (error) {
      const isKnown = error instanceof YamlError || error instanceof GuardedFileError;
      if (isKnown) return { kind: 'broken', name, problem: error.message };
      throw error;
    }
  }

  return {
    list: async () => Promise.all((await names()).map(read)),
    async get(name) {
      return isProfileName(name) && (await names()).includes(name) ? read(name) : undefined;
    },
  };
}
