// The order of test files: those that take longest and mostly wait begin first, so that no worker is
// left alone with one of them at the end.

import { BaseSequencer, type TestSpecification } from 'vitest/node';

const SLOWEST = [
  'test/system/memory-limit.test.ts',
  'test/crash/telegram-crash.test.ts',
  'test/system/web-page.test.ts',
  'test/system/email-trouble.test.ts',
  'test/cli/whatsapp-login.test.ts',
  'test/hostile/injections.test.ts',
  'test/system/container.test.ts',
  'test/system/package.test.ts',
  'test/crash/whatsapp-crash.test.ts',
  'test/hostile/updates.test.ts',
  'test/scenario/second-thoughts.test.ts',
  'test/scenario/partition.test.ts',
  'test/tools/web/page-reader.test.ts',
];

export class SlowestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rankOf = ({ moduleId }: TestSpecification) => {
      const at = SLOWEST.findIndex((name) => moduleId.endsWith(`/${name}`));
      return at < 0 ? SLOWEST.length : at;
    };
    return (await super.sort(files)).toSorted((one, other) => rankOf(one) - rankOf(other));
  }
}
