// A certificate for 127.0.0.1 that was good until February 2020 and is its own authority.

import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const CONFIG = `
[ca]
default_ca = own
[own]
database = index.txt
rand_serial = yes
new_certs_dir = .
default_md = sha256
policy = names
x509_extensions = extensions
[names]
commonName = supplied
[extensions]
basicConstraints = CA:TRUE
subjectAltName = IP:127.0.0.1
[req]
distinguished_name = asked
[asked]
`;
const VALID = ['-startdate', '20200101000000Z', '-enddate', '20200201000000Z'];

export function expiredCertificate(): { readonly key: string; readonly cert: string } {
  const folder = mkdtempSync(join(tmpdir(), 'nanobot-expired-'));
  const openssl = (...args: readonly string[]) =>
    execFileSync('openssl', [...args, '-config', 'ca.cnf'], { cwd: folder, stdio: 'ignore' });
  try {
    writeFileSync(join(folder, 'ca.cnf'), CONFIG);
    writeFileSync(join(folder, 'index.txt'), '');
    const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
    openssl('req', '-new', ...key, '-keyout', 'key.pem', '-out', 'asked.pem', '-subj', '/CN=old');
    const out = ['-in', 'asked.pem', '-keyfile', 'key.pem', '-out', 'cert.pem'];
    openssl('ca', '-batch', '-selfsign', '-notext', ...out, ...VALID);
    const read = (name: string) => readFileSync(join(folder, name), 'utf8');
    return { key: read('key.pem'), cert: read('cert.pem') };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
