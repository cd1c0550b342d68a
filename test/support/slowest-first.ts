// The order of test files. Projects follow one another, because a worker starts anew for another one. Of
// the last project those begin first that take long and have little text, so that no worker is left alone with
// one of them at the end: where nothing is known of the last run, larger files come before smaller ones.

import { BaseSequencer, type TestSpecification } from 'vitest/node';

const SLOWEST = [
  'test/channels/whatsapp/contract.test.ts',
  'test/scenario/unknown-senders.test.ts',
  'test/docs/console.test.ts',
  'test/scenario/partition.test.ts',
  'test/scenario/pooler.test.ts',
  'test/scenario/shortage.test.ts',
  'test/scenario/full-disk.test.ts',
  'test/scenario/small-window.test.ts',
  'test/bus/postgres.test.ts',
  'test/store/power-cut.test.ts',
  'test/channels/email/big-mail.test.ts',
  'test/homes/v1.test.ts',
  'test/mcp/add.test.ts',
  'test/cli/cron-command.test.ts',
  'test/docs/texts.test.ts',
  'test/scenario/self-test.test.ts',
  'test/scenario/media-bucket.test.ts',
  'test/channels/lark/contract.test.ts',
  'test/core/zone-time.test.ts',
];

export class SlowestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const projects = [...new Set(sorted.map(({ project }) => project))];
    const placeOf = ({ moduleId, project }: TestSpecification) => {
      const at = SLOWEST.findIndex((name) => moduleId.endsWith(`/${name}`));
      return projects.indexOf(project) * (SLOWEST.length + 1) + (at < 0 ? SLOWEST.length : at);
    };
    return sorted.toSorted((one, other) => placeOf(one) - placeOf(other));
  }
}
