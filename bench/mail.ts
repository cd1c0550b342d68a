// Memory of a process that reads one large mail with its signature and its file, one process per
// mail. Over 25 MB only the header is fetched.

import { bigMail, readBigMail } from '../test/support/big-mail.ts';
import { header, row } from './table.ts';

const MAIL_MB = [0.02, 10, 24, 60, 150];
/** Growth of a file by base64 and its line ends. */
const BASE64_GROWTH = (4 / 3) * (78 / 76);

export async function mail(): Promise<void> {
  header('mail MB', 'RSS above that before it MB', 'its file');
  for (const megabytes of MAIL_MB) {
    const sent = await bigMail(Math.floor((megabytes * 1024 * 1024) / BASE64_GROWTH));
    const { grownMb, media } = await readBigMail(sent);
    const file = media === undefined ? 'not fetched' : media === sent.sha256 ? 'whole' : 'broken';
    row(megabytes, grownMb.toFixed(0), file);
  }
}
