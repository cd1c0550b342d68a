// Where the files that come with the program lie: the same in a checkout and in a built package.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const PACKAGE_ROOT = join(import.meta.dirname, '..', '..', '..', '..');

export const WORKSPACE_TEMPLATE = join(PACKAGE_ROOT, 'workspace');
export const SHIPPED_SKILLS = join(PACKAGE_ROOT, 'skills');
/** agents/ and prompts/ of the supervisor. */
export const SHIPPED_AGENTS = join(PACKAGE_ROOT, 'config');
export const CONFIG_SCHEMA_FILE = join(PACKAGE_ROOT, 'config', 'config.schema.json');

export function programVersion(): string {
  const manifest: unknown = JSON.parse(readFileSync(join(PACKAGE_ROOT, 'package.json'), 'utf8'));
  const named = typeof manifest === 'object' && manifest !== null && 'version' in manifest;
  return named ? String(manifest.version) : '';
}
