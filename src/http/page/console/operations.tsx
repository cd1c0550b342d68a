// Operations: whether the gateway is well, and what its owner does about it.

import { t } from '/texts.js';
import { Backups } from './backups.tsx';
import { Page, type ViewProps } from './parts.tsx';

export function Operations({ parts }: ViewProps) {
  return (
    <Page title={t`Operations`}>
      <Backups parts={parts} />
    </Page>
  );
}
