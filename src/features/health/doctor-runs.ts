// Runs `nanobot doctor` for the page in a process of its own: it reads the whole store and asks the
// platforms. All browsers see the same run.

import type { Kernel } from '../../kernel/feature.ts';
import { runOwnProgram } from '../../kernel/own-program.ts';
import { parseJson } from '../../lib/json/json.ts';
import { t } from '../../lib/texts.ts';
import { findings, type OperationsState } from './rules/views.ts';

export function createDoctorRuns(kernel: Kernel) {
  const { home, env, clock, log, resources, options } = kernel;
  const { typed = (text: string) => text } = options;
  const closing = new AbortController();
  resources.defer(() => closing.abort());
  let state: OperationsState['doctor'] = {};

  async function run(only: string | undefined) {
    const fix = only === undefined ? [] : ['--fix', '--yes', '--only', only];
    const args = ['doctor', '--json', ...fix];
    const { output, said } = await runOwnProgram(args, { home, env, signal: closing.signal });
    const found = findings.safeParse(parseJson(output)).data;
    const at = clock.now();
    if (found === undefined) {
      state = { at, problem: said || t`The check said nothing. See the gateway’s log.` };
      return;
    }
    const shown = found.map(({ text, remedy, ...finding }) => ({
      ...{ ...finding, text: typed(text) },
      ...(remedy === undefined ? {} : { remedy: typed(remedy) }),
    }));
    state = { at, findings: shown };
  }

  return {
    get state() {
      return state;
    },
    /** False while another run is under way. @param only the check whose findings are fixed */
    start(only?: string): boolean {
      if (state.running !== undefined) return false;
      const { running: _over, ...known } = state;
      state = { ...known, running: only === undefined ? 'check' : 'fix' };
      run(only).catch((error) => {
        log.error('doctor failed', { error });
        state = known;
      });
      return true;
    },
  };
}
