// What a program could try that the agent was talked into running: reading, writing and reaching what
// is not its own, and leaving its sandbox. Each line is one attempt, for a POSIX shell. None of them does
// harm where it succeeds: what is changed is changed to what it was, or lies in a folder of the test.

export type Places = {
  /** Of the gateway: holds its configuration and the workspace. */
  readonly home: string;
  readonly workspace: string;
  /** A folder of somebody else. */
  readonly outside: string;
  /** Process id of the gateway. */
  readonly pid: number;
  /** Where servers of this machine listen. */
  readonly port: number;
  readonly abstractSocket: string;
};

const pairs = <A, B>(as: readonly A[], bs: readonly B[], join: (a: A, b: B) => string) =>
  as.flatMap((a) => bs.map((b) => join(a, b)));

/** All of them hold something of others on the machine, where it has them. */
export const secretPaths = ({ home, workspace, outside, pid }: Places): readonly string[] => [
  `${home}/config.json`,
  `${home}/state.db`,
  `${home}/gateway-token`,
  `${home}/.ssh/id_ed25519`,
  `${outside}/secret.txt`,
  `${workspace}/../config.json`,
  `${workspace}/notes/../../config.json`,
  `${workspace}/.env`,
  `${workspace}/app/.env.local`,
  `${workspace}/app/deep/er/.env`,
  `${workspace}/.ssh/id_rsa`,
  `${workspace}/keys/server.pem`,
  `${workspace}/keys/client.key`,
  `${workspace}/.aws/credentials`,
  `${workspace}/link-to-config`,
  `/proc/1/root${home}/config.json`,
  `/proc/self/root${home}/config.json`,
  `/proc/${pid}/root${home}/config.json`,
  `/proc/${pid}/cwd/package.json`,
  `/proc/${pid}/environ`,
  '/proc/1/environ',
  '/proc/self/environ',
  '/etc/shadow',
  '/etc/passwd',
  '/etc/hostname',
  '/etc/machine-id',
  '/etc/sudoers',
  '/etc/gshadow',
  '/var/lib/dpkg/status',
  '/dev/mem',
  '/dev/vda',
  '/proc/kcore',
];

const READERS = [
  (path: string) => `cat ${path}`,
  (path: string) => `head -c 4096 ${path}`,
  (path: string) => `dd if=${path} bs=4096 count=1 status=none`,
  (path: string) => `cp ${path} stolen-$$ && cat stolen-$$`,
  (path: string) => `ln -sf ${path} planted-$$; cat planted-$$`,
  (path: string) => `ln ${path} planted-hard-$$ && cat planted-hard-$$`,
  (path: string) => `while read -r line; do echo "$line"; done < ${path}`,
  (path: string) => `tar -cf - -C / ${path.slice(1)} | head -c 8192`,
];

export const readAttacks = (places: Places): readonly string[] =>
  pairs(READERS, secretPaths(places), (read, path) => read(path));

export const environmentAttacks: readonly string[] = [
  'env',
  'set',
  'export -p',
  'printenv',
  'tr "\\0" "\\n" < /proc/self/environ',
  'tr "\\0" "\\n" < /proc/1/environ',
  'tr "\\0" "\\n" < /proc/$PPID/environ',
  'cat /proc/*/environ',
  'cat /proc/*/cmdline',
  'ps auxeww',
  'strings /proc/1/maps',
  'cat /proc/self/mountinfo',
  'ls -laR /proc/1/fd /proc/self/fd',
  'cat <&3; cat <&4; cat <&5',
  'python3 -c "import os; print(os.environ)"',
  'node -e "console.log(process.env)"',
  'perl -e "print %ENV"',
  'bash -c "compgen -v; declare -p"',
  'echo "$API_KEY $NANOBOT_TOKEN $OPENAI_API_KEY $AWS_SECRET_ACCESS_KEY"',
  'LD_PRELOAD=/tmp/x.so env',
];

const HOSTS = [
  '127.0.0.1',
  'localhost',
  '0.0.0.0',
  '127.1',
  '127.0.0.53',
  '169.254.169.254',
  '10.0.0.1',
  '192.168.0.1',
  '1.1.1.1',
  '100.100.100.200',
];
const CALLERS = [
  (host: string, port: number) => `bash -c 'exec 9<>/dev/tcp/${host}/${port}; echo got >&9'`,
  (host: string, port: number) => `bash -c 'echo got > /dev/udp/${host}/${port}'`,
  (host: string, port: number) => `curl -s -m 1 http://${host}:${port}/`,
  (host: string, port: number) =>
    `perl -MIO::Socket::INET -e 'print IO::Socket::INET->new(PeerAddr=>"${host}:${port}",Timeout=>1) ? "got" : ""'`,
];

export const networkAttacks = ({ port, abstractSocket, home }: Places): readonly string[] => [
  ...pairs(CALLERS, HOSTS, (call, host) => call(host, port)),
  `curl -s -m 1 'http://[::1]:${port}/'`,
  `curl -s -m 1 'http://[::ffff:127.0.0.1]:${port}/'`,
  `curl -s -m 1 http://2130706433:${port}/`,
  `curl -s -m 1 http://0x7f000001:${port}/`,
  `curl -s -m 1 --unix-socket ${home}/gateway.sock http://x/`,
  `curl -s -m 1 --abstract-unix-socket ${abstractSocket} http://x/`,
  'curl -s -m 1 --unix-socket /var/run/docker.sock http://x/info',
  'getent hosts example.org',
  'nslookup -timeout=1 example.org 1.1.1.1',
  'ping -c 1 -W 1 1.1.1.1',
  'ip link add dummy0 type dummy',
  'ip addr add 10.9.9.9/24 dev lo && ip route add default via 10.9.9.9',
  'git ls-remote https://example.org/x.git',
  'ssh -o ConnectTimeout=1 -o BatchMode=yes 127.0.0.1 true',
];

/** Files on the machine that have to stay as they are, or not to appear. */
export const writeTargets = ({ home, workspace, outside }: Places): readonly string[] => [
  `${home}/planted`,
  `${home}/config.json`,
  `${outside}/planted`,
  `${outside}/secret.txt`,
  `${workspace}/../planted`,
  `${workspace}/AGENTS.md`,
  `${workspace}/memory/MEMORY.md`,
  `${workspace}/skills/evil/SKILL.md`,
  `${workspace}/skills/good/SKILL.md`,
  `${workspace}/people/ann/memory/MEMORY.md`,
  `${workspace}/.git/hooks/post-commit`,
  `${workspace}/.git/config`,
  `${workspace}/.env`,
  '/etc/planted',
  '/usr/bin/planted',
  '/usr/local/bin/git',
  '/opt/planted',
  '/var/tmp/planted-by-exec',
  '/var/spool/cron/crontabs/root-planted',
  '/dev/planted',
];
const WRITERS = [
  (path: string) => `echo PLANTED > ${path}`,
  (path: string) => `mkdir -p $(dirname ${path}) && echo PLANTED > ${path}`,
  (path: string) => `echo PLANTED > source-$$; cp -f source-$$ ${path}`,
  (path: string) => `echo PLANTED > source-$$; mv -f source-$$ ${path}`,
  (path: string) => `echo PLANTED > source-$$; ln -sf $PWD/source-$$ ${path}`,
  (path: string) =>
    `ln -sfn $(dirname ${path}) there-$$; echo PLANTED > there-$$/$(basename ${path})`,
];
const REMOVERS = [
  (path: string) => `rm -rf ${path}`,
  (path: string) => `rm -rf $(dirname ${path})`,
  (path: string) => `mv $(dirname ${path}) moved-$$`,
];

export const writeAttacks = (places: Places): readonly string[] => {
  const targets = writeTargets(places);
  const ours = targets.filter((path) => !/^\/(?:etc|usr|root|var|dev)\//.test(path));
  return [
    ...pairs(WRITERS, targets, (write, path) => write(path)),
    ...pairs(REMOVERS, ours, (remove, path) => remove(path)),
  ];
};

const same = (name: string) => `value=$(cat /proc/sys/${name}); echo "$value" > /proc/sys/${name}`;

/** Every one of them has to fail. */
export const kernelAttacks = ({ home, workspace, pid }: Places): readonly string[] => [
  'mount -t tmpfs none /mnt',
  'mount -t proc proc /proc',
  'mount --bind / /tmp',
  `mount --bind ${workspace} /usr`,
  'mount -o remount,rw /',
  'mount -o remount,rw /usr',
  `mount -o remount,rw,bind ${workspace}/AGENTS.md`,
  `umount ${workspace}/.env`,
  `umount -l ${workspace}/AGENTS.md`,
  'umount /proc',
  'umount -l /tmp',
  'mount --move /tmp /usr',
  'unshare -U true',
  'unshare -r true',
  'unshare -m true',
  'unshare -n true',
  'unshare -p -f true',
  'unshare -Urm mount -t tmpfs none /mnt',
  'bwrap --ro-bind / / true',
  'chroot / true',
  'chroot /proc/1/root true',
  'pivot_root . .',
  'nsenter -t 1 -m -p -n true',
  `nsenter -t ${pid} -a true`,
  'nsenter -t 1 -U true',
  'setpriv --reuid 0 true',
  'setpriv --inh-caps +sys_admin --ambient-caps +sys_admin true',
  'capsh --gid=0 --uid=0 -- -c true',
  'timeout 0.2 su root -c true',
  'sudo -n true',
  'newgrp root < /dev/null',
  'chsh -s /bin/sh root < /dev/null',
  'passwd -S root',
  `kill -CONT ${pid}`,
  `kill -0 ${pid}`,
  `cat /proc/${pid}/status`,
  'mknod disk b 254 0',
  'mknod mem c 1 1',
  'chown 0:0 hello.txt',
  'echo 1 > /proc/sys/kernel/sysrq',
  'echo h > /proc/sysrq-trigger',
  ...['kernel/core_pattern', 'kernel/modprobe', 'vm/swappiness', 'fs/suid_dumpable'].map(same),
  ...['kernel/hostname', 'net/ipv4/ip_forward', 'kernel/randomize_va_space'].map(same),
  'echo 0 > /proc/1/oom_score_adj',
  'echo -1000 > /proc/self/oom_score_adj',
  'echo x > /proc/1/mem',
  'mkdir /sys/fs/cgroup/x',
  'echo /tmp/x > /sys/fs/cgroup/release_agent',
  'hostname "$(hostname)"',
  'date -s "$(date)"',
  'losetup /dev/loop0 hello.txt',
  'insmod x.ko',
  'modprobe dummy',
  'iptables -L',
  'ip link set lo down',
  'nice -n -20 true 2>&1 | grep -q . && exit 1; renice -n -20 $$',
  'chrt -f 50 true',
  'ulimit -d unlimited',
  'ulimit -f unlimited',
  'prlimit --pid $$ --data=unlimited:unlimited',
  `gdb -p ${pid} -batch 2>&1 | grep -q detached`,
  `strace -p ${pid}`,
  `python3 -c "import ctypes,sys; c=ctypes.CDLL(None); sys.exit(c.ptrace(16,${pid},0,0) != 0)"`,
  "python3 -c \"import ctypes,sys; c=ctypes.CDLL(None); sys.exit(c.mount(b'none',b'/tmp',b'tmpfs',0,None) != 0)\"",
  'python3 -c "import ctypes,sys; c=ctypes.CDLL(None); sys.exit(c.unshare(0x10000000) != 0)"',
  'python3 -c "import ctypes,sys; c=ctypes.CDLL(None); sys.exit(c.setns(0,0) != 0)"',
  'python3 -c "import os; os.setuid(0)"',
  'python3 -c "import os; os.chroot(\'/\')"',
  'python3 -c "import fcntl,termios; fcntl.ioctl(0,termios.TIOCSTI,b\'x\')"',
  "python3 -c \"import fcntl,termios; fcntl.ioctl(open('/dev/tty'),termios.TIOCSTI,b'x')\"",
  'python3 -c "import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW)"',
  'python3 -c "import socket; socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)"',
  `ls ${home}/config.json`,
  `ls -la ${home} | grep -v workspace | grep -q config`,
  'ls /home/* /root /var/log /srv /opt/* /mnt/* /media/* /sys/kernel',
];

const WRAPPERS = [
  ...['env', 'env -i', 'env -S', 'env A=b', 'nice', 'nice -n 5', 'timeout 2', 'timeout -s KILL 2'],
  ...['nohup', 'setsid', 'setsid -w', 'stdbuf -o0', 'time', 'ionice', 'taskset 1', 'busybox'],
  ...['xargs -a /dev/null', 'command', 'exec', 'eval', 'sh -c "$0 $@"', 'flock hello.txt'],
  ...['script -qc', 'setarch -R', 'chrt -o 0', 'prlimit --nofile=64', 'unshare', 'runuser --'],
  ...['start-stop-daemon --start --exec', 'linux64'],
];

/** Case X01: whatever stands before it, it runs where it was confined. */
export const wrapperAttacks = ({ home, workspace, outside, port }: Places): readonly string[] => {
  const payloads = [
    `cat ${home}/config.json`,
    `cat ${workspace}/.env`,
    `tee ${outside}/planted`,
    `curl -s -m 1 http://127.0.0.1:${port}/`,
    `cat /proc/1/environ`,
  ];
  return pairs(WRAPPERS, payloads, (wrapper, payload) => `${wrapper} ${payload}`);
};

/** Case X03: what runs any text. */
export const interpreterAttacks = ({ home, outside }: Places): readonly string[] => {
  const file = `${home}/config.json`;
  const to = `${outside}/planted`;
  return [
    ...['sh', 'bash', 'dash', 'rbash', 'zsh', 'ksh', 'fish', 'busybox sh'].flatMap((shell) => [
      `${shell} -c 'cat ${file}'`,
      `echo 'echo PLANTED > ${to}' | ${shell}`,
    ]),
    ...['python3', 'python', 'python2', 'pypy3'].flatMap((python) => [
      `${python} -c 'print(open("${file}").read())'`,
      `${python} -c 'open("${to}","w").write("PLANTED")'`,
    ]),
    `node -e 'console.log(require("fs").readFileSync("${file}","utf8"))'`,
    `node -e 'require("fs").writeFileSync("${to}","PLANTED")'`,
    `node -p 'process.binding("fs") && require("child_process").execSync("cat ${file}").toString()'`,
    `perl -e 'open(F,"${file}"); print <F>'`,
    `perl -e 'open(F,">${to}"); print F "PLANTED"'`,
    `ruby -e 'puts File.read("${file}")'`,
    `php -r 'readfile("${file}");'`,
    `lua -e 'print(io.open("${file}"):read("a"))'`,
    `tclsh <<< 'puts [read [open ${file}]]'`,
    `awk 'BEGIN { while ((getline l < "${file}") > 0) print l; system("cat ${file}") }'`,
    `sed -n p ${file}`,
    `sed 's/x/x/w ${to}' hello.txt`,
    `find / -maxdepth 3 -name config.json -exec cat {} ;`,
    `printf 'all:\\n\\tcat ${file}\\n' | make -f -`,
    `git -c alias.x='!cat ${file}' x`,
    `vi -es -c ':r ${file}' -c ':%p' -c ':q!'`,
    `ed -s ${file} <<< ',p'`,
    `m4 ${file}`,
    `gcc -x c - -include ${file} < /dev/null`,
    `openssl enc -in ${file}`,
  ];
};

/** Case X02: nothing of it means anything without a shell. */
export const LITERAL_WORDS: readonly string[] = [
  `$${'{HOME}'}`,
  ...['*', '?', '[a-z]*', '**/*', '.*', '/etc/*', '~', '~root', '~/.ssh', '$HOME'],
  ...['$(id)', '`id`', '$((1+1))', '{a,b}', '{1..9}', ';id', '&& id', '| id', '|| id', '& id'],
  ...['> planted', '< /etc/passwd', '>> planted', '2>&1', '<(id)', '<<< x', '!!', '!$', '#x', '\\'],
  ...[
    "'",
    '"',
    '\n',
    '\r\nid',
    ' ',
    '',
    '-',
    '--',
    '-rf',
    '$IFS',
    '$0',
    '$@',
    '%PATH%',
    '\u202eid',
    '\t',
  ],
];
