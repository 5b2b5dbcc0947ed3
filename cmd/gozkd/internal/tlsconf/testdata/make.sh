#!/usr/bin/env bash
# Makes the key stores of this directory: one key and its chain, in every format, by OpenSSL 3 and by the
# keytool of a JDK. The password is secret1 everywhere.
set -euo pipefail
cd "$(dirname "$0")"
rm -f ./*.pem ./*.jks ./*.p12
P=secret1
days=60000

openssl ecparam -name prime256v1 -genkey -noout -out ca-key.tmp
openssl req -x509 -new -key ca-key.tmp -subj "/O=Golden/CN=root" -days $days -out ca.pem
openssl ecparam -name prime256v1 -genkey -noout -out sec1.pem
openssl req -new -key sec1.pem -subj "/O=Golden/CN=zk" |
	openssl x509 -req -CA ca.pem -CAkey ca-key.tmp -set_serial 7 -days $days -extfile <(echo "subjectAltName=DNS:zk.example,IP:127.0.0.1") -out cert.pem
openssl pkcs8 -topk8 -nocrypt -in sec1.pem -out pkcs8.pem
openssl pkcs8 -topk8 -v2 aes-256-cbc -v2prf hmacWithSHA256 -passout pass:$P -in sec1.pem -out encrypted.pem
openssl pkcs8 -topk8 -v2 aes-128-cbc -v2prf hmacWithSHA1 -passout pass:$P -in sec1.pem -out encrypted-sha1.pem
openssl pkcs8 -topk8 -v1 PBE-SHA1-3DES -passout pass:$P -in sec1.pem -out encrypted-3des.pem
openssl ec -aes128 -passout pass:$P -in sec1.pem -out encrypted-old.pem

openssl pkcs12 -export -inkey sec1.pem -in cert.pem -certfile ca.pem -name zk -passout pass:$P -out openssl.p12
openssl pkcs12 -export -legacy -inkey sec1.pem -in cert.pem -certfile ca.pem -name zk -passout pass:$P -out openssl-legacy.p12
openssl pkcs12 -export -nokeys -in ca.pem -passout pass:$P -out openssl-trust.p12

keytool="keytool -noprompt -J-Duser.language=en"
import="$keytool -importkeystore -srckeystore openssl.p12 -srcstoretype PKCS12 -srcstorepass $P -deststorepass $P"
$import -destkeystore keytool.jks -deststoretype JKS
$import -destkeystore keytool.p12 -deststoretype PKCS12
cp keytool.p12 pkcs12-called.jks
$import -destkeystore keytool-legacy.p12 -deststoretype PKCS12 -J-Dkeystore.pkcs12.legacy
$import -destkeystore jceks.jks -deststoretype JCEKS
for type in JKS PKCS12; do
	extension=${type/PKCS12/p12}
	$keytool -importcert -trustcacerts -alias root -file ca.pem -storetype $type -storepass $P -keystore "trust.${extension,,}"
done
$import -destkeystore two.jks -deststoretype JKS
$keytool -genkeypair -alias another -keyalg EC -groupname secp256r1 -validity $days -dname "CN=another" -storetype JKS -storepass $P -keypass $P -keystore two.jks
# As ZooKeeper's documentation makes them: signed by themselves, and named by the common name alone.
$keytool -genkeypair -alias zk -keyalg EC -groupname secp256r1 -validity $days -dname "cn=zk.example" -keypass $P -storepass $P -storetype JKS -keystore documented.jks
$keytool -exportcert -alias zk -rfc -storepass $P -keystore documented.jks -file documented.pem
rm ca-key.tmp
