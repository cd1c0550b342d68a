declare module 'libsignal/src/crypto.js' {
  type Bytes = Buffer;
  const functions: {
    calculateMAC(key: Bytes, data: Bytes): Bytes;
    verifyMAC(data: Bytes, key: Bytes, mac: Bytes, length: number): void;
    deriveSecrets(input: Bytes, salt: Bytes, info: Bytes, chunks?: number): Bytes[];
    encrypt(key: Bytes, data: Bytes, iv: Bytes): Bytes;
    decrypt(key: Bytes, data: Bytes, iv: Bytes): Bytes;
  };
  export = functions;
}

declare module 'libsignal/src/curve.js' {
  const functions: {
    generateKeyPair(): { readonly pubKey: Buffer; readonly privKey: Buffer };
    calculateAgreement(publicKey: Buffer, privateKey: Buffer): Buffer;
  };
  export = functions;
}
