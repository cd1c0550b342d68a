// The agent's mailbox at the servers of a test, as its configuration has it.

export const AGENT = 'agent@nanobot.test';

type Servers = {
  readonly imapPort: number;
  readonly smtpPort: number;
  readonly password?: string;
};

export const mailboxAt = ({ imapPort, smtpPort, password = 'secret-of-the-box' }: Servers) => {
  const [host, security] = ['127.0.0.1', 'none'] as const;
  return {
    ...{ enabled: true, username: AGENT, password },
    ...{ imapHost: host, imapPort, imapSecurity: security },
    ...{ smtpHost: host, smtpPort, smtpSecurity: security },
  };
};
