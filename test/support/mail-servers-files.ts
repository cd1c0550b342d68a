// Configuration files of the Dovecot and Postfix that the system tests start in a temporary folder.

export type MailServerPlan = {
  readonly root: string;
  readonly imapPort: number;
  readonly imapsPort: number;
  readonly smtpPort: number;
  readonly smtpsPort: number;
  /** Domains whose every address is a mailbox. */
  readonly domains: readonly string[];
  readonly password: string;
  /** System user who owns the mailboxes. */
  readonly uid: number;
  readonly gid: number;
  /** Where access tokens are looked up (RFC 7662); without it only passwords are taken. */
  readonly introspectionUrl?: string;
};

export function dovecotConfig(plan: MailServerPlan): string {
  const { root, uid, gid } = plan;
  return `
protocols = imap lmtp
listen = 127.0.0.1
base_dir = ${root}/dovecot
log_path = ${root}/dovecot.log
ssl = yes
ssl_cert = <${root}/cert.pem
ssl_key = <${root}/key.pem
ssl_min_protocol = TLSv1.2
disable_plaintext_auth = no
auth_mechanisms = plain login${plan.introspectionUrl === undefined ? '' : ' xoauth2 oauthbearer'}
auth_failure_delay = 0
mail_location = maildir:${root}/mail/%u
first_valid_uid = 1
mail_max_userip_connections = 50
default_process_limit = 20
default_client_limit = 200
passdb {
  driver = static
  mechanisms = plain login
  args = password=${plan.password}
}
${plan.introspectionUrl === undefined ? '' : tokenPassdb(root)}
userdb {
  driver = static
  args = uid=${uid} gid=${gid} home=${root}/mail/%u allow_all_users=yes
}
namespace inbox {
  inbox = yes
  mailbox Sent {
    special_use = \\Sent
    auto = create
  }
  mailbox Kept {
    special_use = \\Archive
    auto = create
  }
}
service imap-login {
  inet_listener imap {
    port = ${plan.imapPort}
  }
  inet_listener imaps {
    port = ${plan.imapsPort}
    ssl = yes
  }
}
service lmtp {
  unix_listener ${root}/dovecot/lmtp-in {
    mode = 0666
  }
}
service anvil {
  unix_listener anvil-auth-penalty {
    mode = 0
  }
}
service auth {
  unix_listener ${root}/dovecot/sasl {
    mode = 0666
  }
}
`;
}

const tokenPassdb = (root: string) => `passdb {
  driver = oauth2
  mechanisms = xoauth2 oauthbearer
  args = ${root}/oauth2.conf
}`;

/** Dovecot asks about every token it is shown. */
export const dovecotTokenCheck = (introspectionUrl: string) => `
introspection_mode = post
introspection_url = ${introspectionUrl}
username_attribute = username
active_attribute = active
active_value = true
`;

export function postfixMain(plan: MailServerPlan): string {
  const { root } = plan;
  return `
compatibility_level = 3.6
queue_directory = ${root}/queue
data_directory = ${root}/data
myhostname = mx.nanobot.test
mydestination =
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
mynetworks = 127.0.0.0/8
smtp_dns_support_level = disabled
default_transport = error:only local mail here
# Taken, and then found to go round in a circle: Postfix itself reports that it cannot be delivered.
transport_maps = inline:{ lost.test=smtp:[127.0.0.1]:${plan.smtpPort} }
virtual_mailbox_domains = ${plan.domains.join(' ')}
virtual_transport = lmtp:unix:${root}/dovecot/lmtp-in
smtpd_sasl_auth_enable = yes
smtpd_sasl_type = dovecot
smtpd_sasl_path = ${root}/dovecot/sasl
smtpd_tls_cert_file = ${root}/cert.pem
smtpd_tls_key_file = ${root}/key.pem
smtpd_tls_security_level = may
smtpd_recipient_restrictions = check_recipient_access regexp:${root}/refused, permit_mynetworks, reject_unauth_destination
smtpd_client_connection_count_limit = 0
smtpd_client_connection_rate_limit = 0
message_size_limit = 100000000
maillog_file = ${root}/postfix.log
maillog_file_prefixes = ${root}
alias_maps =
alias_database =
local_recipient_maps =
in_flow_delay = 0
`;
}

export function postfixMaster(plan: MailServerPlan): string {
  const daemons = [
    'cleanup unix n - n - 0 cleanup',
    'qmgr unix n - n 300 1 qmgr',
    'tlsmgr unix - - n 1000? 1 tlsmgr',
    'rewrite unix - - n - - trivial-rewrite',
    'bounce unix - - n - 0 bounce',
    'defer unix - - n - 0 bounce',
    'trace unix - - n - 0 bounce',
    'verify unix - - n - 1 verify',
    'flush unix n - n 1000? 0 flush',
    'proxymap unix - - n - - proxymap',
    'proxywrite unix - - n - 1 proxymap',
    'smtp unix - - n - - smtp',
    'showq unix n - n - - showq',
    'error unix - - n - - error',
    'retry unix - - n - - error',
    'discard unix - - n - - discard',
    'lmtp unix - - n - - lmtp',
    'anvil unix - - n - 1 anvil',
    'scache unix - - n - 1 scache',
    'postlog unix-dgram n - n - 1 postlogd',
  ];
  return [
    `127.0.0.1:${plan.smtpPort} inet n - n - - smtpd`,
    `127.0.0.1:${plan.smtpsPort} inet n - n - - smtpd -o smtpd_tls_wrappermode=yes`,
    ...daemons,
    '',
  ].join('\n');
}
